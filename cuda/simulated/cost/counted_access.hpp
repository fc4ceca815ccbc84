#pragma once
/// What kernels tell a cost report beside what the compiler's instrumentation tells of plain accesses (docs/guide/
/// cost-report.md). In kernels that are not compiled for it, whose macro ENGRAM_SIMULATED_COST is not defined, loads
/// and stores are plain ones.

#include <cstddef>

#include "cuda/simulated/intrinsics.hpp"

#if defined(ENGRAM_SIMULATED_COST)
/// Of a function: the compiler's instrumentation passes it by. It cannot be inlined into one that is not so.
#define ENGRAM_NOT_COUNTED __attribute__((no_sanitize_thread))
#else
#define ENGRAM_NOT_COUNTED
#endif

namespace engram::simulated {

void count_load(const void* address, std::size_t bytes);
void count_store(const void* address, std::size_t bytes);
/// A product of 16x8 with 16 inner places, by the warp; called by each lane.
void count_mma();

#if defined(ENGRAM_SIMULATED_COST)
template <class V>
ENGRAM_NOT_COUNTED __attribute__((noinline)) V loaded(const void* from) {
  return *static_cast<const V*>(from);
}
template <class V>
ENGRAM_NOT_COUNTED __attribute__((noinline)) void put(void* to, V value) {
  *static_cast<V*>(to) = value;
}
/// One access, however the compiler would take it apart.
template <class V>
__forceinline__ V load_whole(const void* from) {
  count_load(from, sizeof(V));
  return loaded<V>(from);
}
template <class V>
__forceinline__ void store_whole(void* to, const V& value) {
  count_store(to, sizeof(V));
  put<V>(to, value);
}
#else
template <class V>
V loaded(const void* from) {
  return *static_cast<const V*>(from);
}
template <class V>
V load_whole(const void* from) {
  return *static_cast<const V*>(from);
}
template <class V>
void store_whole(void* to, const V& value) {
  *static_cast<V*>(to) = value;
}
#endif

}  // namespace engram::simulated

/// The functions that GCC's and Clang's -fsanitize=thread calls before every load and store, and in the place of atomic
/// operations. Kernels that are compiled with it for a cost report are linked with these and not with ThreadSanitizer.
/// Outside of a counted launch they do nothing but what the program needs.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cuda/simulated/cost/access_counter.hpp"
#include "cuda/simulated/cost/counted_access.hpp"

namespace engram::simulated {
namespace {

bool instrumented = false;

void note(const void* site, const void* address, std::size_t bytes, WarpAccess::Kind kind) {
  if (AccessCounter* const counter = AccessCounter::active()) counter->access(site, address, bytes, kind);
}

}  // namespace

bool kernels_tell_accesses() { return instrumented; }

void count_load(const void* address, std::size_t bytes) {
  note(__builtin_return_address(0), address, bytes, WarpAccess::Kind::read);
}
void count_store(const void* address, std::size_t bytes) {
  note(__builtin_return_address(0), address, bytes, WarpAccess::Kind::write);
}
void count_mma() {
  if (AccessCounter* const counter = AccessCounter::active()) counter->product();
}

}  // namespace engram::simulated

#if !defined(ENGRAM_SIMULATED_TSAN)  // which has functions of these names

using engram::simulated::AccessCounter;
using engram::simulated::WarpAccess;

#define ENGRAM_NOTE(bytes, kind) \
  engram::simulated::note(__builtin_return_address(0), address, bytes, WarpAccess::Kind::kind)

// Declared and defined: such names have no header.
#define ENGRAM_PLAIN(name, bytes, kind) \
  void __tsan_##name(void* address);    \
  void __tsan_##name(void* address) { ENGRAM_NOTE(bytes, kind); }

// The order that is asked for may be stronger: it changes nothing that is counted.
#define ENGRAM_CHANGE(bits, name, operation)                                                                       \
  std::uint##bits##_t __tsan_atomic##bits##_##name(std::uint##bits##_t* address, std::uint##bits##_t value, int);  \
  std::uint##bits##_t __tsan_atomic##bits##_##name(std::uint##bits##_t* address, std::uint##bits##_t value, int) { \
    ENGRAM_NOTE(sizeof value, atomic);                                                                             \
    return operation(address, value, __ATOMIC_SEQ_CST);                                                            \
  }
#define ENGRAM_COMPARE(bits, name)                                                                                   \
  int __tsan_atomic##bits##_##name(std::uint##bits##_t* address, std::uint##bits##_t* expected,                      \
                                   std::uint##bits##_t value, int, int);                                             \
  int __tsan_atomic##bits##_##name(std::uint##bits##_t* address, std::uint##bits##_t* expected,                      \
                                   std::uint##bits##_t value, int, int) {                                            \
    ENGRAM_NOTE(sizeof value, atomic);                                                                               \
    return __atomic_compare_exchange_n(address, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ? 1 : 0; \
  }
#define ENGRAM_LOAD(bits)                                                                   \
  std::uint##bits##_t __tsan_atomic##bits##_load(const std::uint##bits##_t* address, int);  \
  std::uint##bits##_t __tsan_atomic##bits##_load(const std::uint##bits##_t* address, int) { \
    ENGRAM_NOTE(sizeof *address, read);                                                     \
    return __atomic_load_n(address, __ATOMIC_SEQ_CST);                                      \
  }
#define ENGRAM_STORE(bits)                                                                         \
  void __tsan_atomic##bits##_store(std::uint##bits##_t* address, std::uint##bits##_t value, int);  \
  void __tsan_atomic##bits##_store(std::uint##bits##_t* address, std::uint##bits##_t value, int) { \
    ENGRAM_NOTE(sizeof value, write);                                                              \
    __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                                            \
  }
#define ENGRAM_ATOMICS(bits)                         \
  ENGRAM_LOAD(bits)                                  \
  ENGRAM_CHANGE(bits, exchange, __atomic_exchange_n) \
  ENGRAM_CHANGE(bits, fetch_add, __atomic_fetch_add) \
  ENGRAM_CHANGE(bits, fetch_or, __atomic_fetch_or)   \
  ENGRAM_COMPARE(bits, compare_exchange_strong)      \
  ENGRAM_COMPARE(bits, compare_exchange_weak)

extern "C" {

void __tsan_init();
void __tsan_func_entry(void* caller);
void __tsan_func_exit();
void __tsan_read_range(void* address, std::size_t bytes);
void __tsan_write_range(void* address, std::size_t bytes);
void __tsan_vptr_update(void** pointer, void* value);

/// Called by a static initialiser of every source that is compiled so.
void __tsan_init() { engram::simulated::instrumented = true; }
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wframe-address"
void __tsan_func_entry(void*) {
  // Above the caller's saved frame pointer and its return address are its parameters.
  if (AccessCounter* const counter = AccessCounter::active())
    counter->entered(static_cast<void**>(__builtin_frame_address(1)) + 2);
}
#pragma GCC diagnostic pop
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_read_range(void* address, std::size_t bytes) { ENGRAM_NOTE(bytes, read); }
void __tsan_write_range(void* address, std::size_t bytes) { ENGRAM_NOTE(bytes, write); }

ENGRAM_PLAIN(read1, 1, read)
ENGRAM_PLAIN(read2, 2, read)
ENGRAM_PLAIN(read4, 4, read)
ENGRAM_PLAIN(read8, 8, read)
ENGRAM_PLAIN(read16, 16, read)
ENGRAM_PLAIN(unaligned_read2, 2, read)
ENGRAM_PLAIN(unaligned_read4, 4, read)
ENGRAM_PLAIN(unaligned_read8, 8, read)
ENGRAM_PLAIN(unaligned_read16, 16, read)
ENGRAM_PLAIN(write1, 1, write)
ENGRAM_PLAIN(write2, 2, write)
ENGRAM_PLAIN(write4, 4, write)
ENGRAM_PLAIN(write8, 8, write)
ENGRAM_PLAIN(write16, 16, write)
ENGRAM_PLAIN(unaligned_write2, 2, write)
ENGRAM_PLAIN(unaligned_write4, 4, write)
ENGRAM_PLAIN(unaligned_write8, 8, write)
ENGRAM_PLAIN(unaligned_write16, 16, write)
ENGRAM_LOAD(8)
ENGRAM_STORE(8)
ENGRAM_ATOMICS(32)
ENGRAM_ATOMICS(64)
}

#endif

#pragma once
/// What the engine tells the sanitizers. Kernels are instrumented, the engine is not: its bookkeeping is invisible to
/// ThreadSanitizer, a switch cannot confuse the sanitizer's call stack, and the engine's frames, which a fiber leaves
/// by switching away, mark nothing of the stack for AddressSanitizer. CMake defines ENGRAM_SIMULATED_TSAN and
/// ENGRAM_SIMULATED_ASAN where the program is built with them.

#include <cstddef>
#include <cstdint>

#if defined(ENGRAM_SIMULATED_TSAN)
#include <sanitizer/tsan_interface.h>
// Of its library, without a header.
extern "C" void __tsan_read_range(void* data, unsigned long bytes);
extern "C" void __tsan_write_range(void* data, unsigned long bytes);
#endif
#if defined(ENGRAM_SIMULATED_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace engram::simulated {

/// An order between threads, for ThreadSanitizer: whoever acquires comes after all who released before.
class HappensBefore {
 public:
#if defined(ENGRAM_SIMULATED_TSAN)
  void release() { __tsan_release(&key_); }
  void acquire() { __tsan_acquire(&key_); }

 private:
  std::uint64_t key_ = 0;  // its address is what counts
#else
  void release() {}
  void acquire() {}
#endif
};

/// AddressSanitizer reports accesses to these bytes until they are allowed again.
inline void forbid_memory([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(ENGRAM_SIMULATED_ASAN)
  __asan_poison_memory_region(data, bytes);
#endif
}
inline void allow_memory([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(ENGRAM_SIMULATED_ASAN)
  __asan_unpoison_memory_region(data, bytes);
#endif
}

/// What the running thread does to memory through the engine, for ThreadSanitizer.
inline void tell_read([[maybe_unused]] const void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(ENGRAM_SIMULATED_TSAN)
  __tsan_read_range(const_cast<void*>(data), bytes);
#endif
}
inline void tell_write([[maybe_unused]] void* data, [[maybe_unused]] std::size_t bytes) {
#if defined(ENGRAM_SIMULATED_TSAN)
  __tsan_write_range(data, bytes);
#endif
}

}  // namespace engram::simulated

#pragma once
/// A flow of control that can be suspended: its registers lie on its own stack. Switching is a dozen instructions of
/// assembly, without system calls, on x86-64 and aarch64 (context_x86_64.cpp, context_aarch64.cpp); elsewhere, or with
/// the CMake option ENGRAM_SIMULATED_SWITCH=UCONTEXT, POSIX does it (context_ucontext.cpp), fifteen times slower.

#include <cstddef>

#if defined(ENGRAM_SIMULATED_UCONTEXT)
#include <ucontext.h>
#endif

namespace engram::simulated {

struct Context {
#if defined(ENGRAM_SIMULATED_UCONTEXT)
  ucontext_t registers;
  bool initialised = false;
#else
  void* stack_pointer = nullptr;  ///< of a suspended context; the registers lie above it
#endif
};

/// Makes a context that calls `entry`, which must not return, on the `bytes` bytes from `stack`. What the context was
/// suspended in before is forgotten.
void prepare_context(Context& context, void* stack, std::size_t bytes, void (*entry)());

/// Suspends the caller in `from` and continues `to`; returns when something switches to `from`.
void switch_context(Context& from, Context& to);

}  // namespace engram::simulated

#pragma once
/// A context as the sanitizers see it: ThreadSanitizer takes every fiber for a thread of its own, AddressSanitizer is
/// told which stack is in use.

#include <cstddef>

#include "cuda/simulated/context.hpp"
#include "cuda/simulated/sanitizers.hpp"

namespace engram::simulated {

struct StackBounds {
  void* bottom = nullptr;  ///< the lowest address
  std::size_t bytes = 0;
};

class Fiber {
 public:
  Fiber() = default;
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// This object stands for the calling OS thread from now on: it can be switched from, and back to.
  void adopt_caller();
  /// A fiber that calls `entry` on `stack` when it is switched to. `entry` begins with entered() and never returns.
  /// ThreadSanitizer calls it `simulated thread NUMBER`.
  void prepare(const StackBounds& stack, void (*entry)(), std::size_t number);
  /// For a fiber that was suspended in the middle and will not be continued: forgets what the sanitizers know of its
  /// frames, and releases `ended` for it. prepare() it before it runs again.
  void abandon(HappensBefore& ended);
  /// First on a new stack. `adopted` is the OS thread's object; its stack's bounds are learnt here when the switch came
  /// from it.
  void entered(Fiber& adopted);

  const StackBounds& stack() const { return stack_; }

  /// Suspends `from`, the caller, and continues `to`.
  static void switch_to(Fiber& from, Fiber& to);
  /// switch_to() from a fiber that will never run again.
  [[noreturn]] static void leave_for_good(Fiber& from, Fiber& to);

 private:
  static void announce_switch(void** from_fake_stack, Fiber& to);

  Context context_;
  StackBounds stack_;
  void* fake_stack_ = nullptr;  // AddressSanitizer's, which has the locals that it watches after return
  void* thread_ = nullptr;      // ThreadSanitizer's
  bool owns_thread_ = false;
};

}  // namespace engram::simulated

#include "cuda/simulated/fiber.hpp"

#include <cstdlib>
#include <string>

#include "cuda/simulated/sanitizers.hpp"

namespace engram::simulated {

Fiber::~Fiber() {
#if defined(ENGRAM_SIMULATED_TSAN)
  if (owns_thread_) __tsan_destroy_fiber(thread_);
#endif
}

void Fiber::adopt_caller() {
  stack_ = {};
#if defined(ENGRAM_SIMULATED_TSAN)
  thread_ = __tsan_get_current_fiber();
#endif
}

void Fiber::prepare(const StackBounds& stack, void (*entry)(), [[maybe_unused]] std::size_t number) {
  stack_ = stack;
#if defined(ENGRAM_SIMULATED_TSAN)
  if (!owns_thread_) {
    thread_ = __tsan_create_fiber(0);
    __tsan_set_fiber_name(thread_, ("simulated thread " + std::to_string(number)).c_str());
  }
  owns_thread_ = true;
#endif
  prepare_context(context_, stack.bottom, stack.bytes, entry);
}

void Fiber::abandon([[maybe_unused]] HappensBefore& ended) {
  allow_memory(stack_.bottom, stack_.bytes);
#if defined(ENGRAM_SIMULATED_TSAN)
  void* caller = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(thread_, __tsan_switch_to_fiber_no_sync);
  ended.release();
  __tsan_switch_to_fiber(caller, __tsan_switch_to_fiber_no_sync);
  if (owns_thread_) __tsan_destroy_fiber(thread_);
  owns_thread_ = false;
#endif
}

void Fiber::entered([[maybe_unused]] Fiber& adopted) {
#if defined(ENGRAM_SIMULATED_ASAN)
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(fake_stack_, &bottom, &bytes);
  if (adopted.stack_.bottom == nullptr) adopted.stack_ = {const_cast<void*>(bottom), bytes};
#endif
}

void Fiber::announce_switch([[maybe_unused]] void** from_fake_stack, [[maybe_unused]] Fiber& to) {
#if defined(ENGRAM_SIMULATED_TSAN)
  __tsan_switch_to_fiber(to.thread_, __tsan_switch_to_fiber_no_sync);
#endif
#if defined(ENGRAM_SIMULATED_ASAN)
  __sanitizer_start_switch_fiber(from_fake_stack, to.stack_.bottom, to.stack_.bytes);
#endif
}

void Fiber::switch_to(Fiber& from, Fiber& to) {
  announce_switch(&from.fake_stack_, to);
  switch_context(from.context_, to.context_);
#if defined(ENGRAM_SIMULATED_ASAN)
  __sanitizer_finish_switch_fiber(from.fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::leave_for_good(Fiber& from, Fiber& to) {
  from.fake_stack_ = nullptr;
  announce_switch(nullptr, to);  // no place to keep it: the sanitizer frees the fake stack
  switch_context(from.context_, to.context_);
  std::abort();
}

}  // namespace engram::simulated

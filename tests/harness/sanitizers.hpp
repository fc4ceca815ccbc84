#pragma once
/// What watches the program, asked while it runs: tests are compiled once for the plain build and for those with
/// sanitizers, which watch what tests call.

extern "C" {
[[gnu::weak]] void __asan_init();
// Not __tsan_init, which the simulated device has too (cuda/simulated/cost/instrumentation.cpp).
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
}

namespace engram::harness {

inline bool address_sanitizer_watches() { return &__asan_init != nullptr; }
inline bool thread_sanitizer_watches() { return &__tsan_create_fiber != nullptr; }

}  // namespace engram::harness

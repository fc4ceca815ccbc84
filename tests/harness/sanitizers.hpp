#pragma once
/// What watches the program, asked while it runs: tests are compiled once for the plain build and for those with
/// sanitizers, which watch what tests call.

extern "C" {
[[gnu::weak]] void __asan_init();
[[gnu::weak]] void __tsan_init();
}

namespace engram::harness {

inline bool address_sanitizer_watches() { return &__asan_init != nullptr; }
inline bool thread_sanitizer_watches() { return &__tsan_init != nullptr; }

}  // namespace engram::harness

#include "cpu/parallel.hpp"

#include <omp.h>

#include <atomic>

#include "core/held_signals.hpp"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace engram::cpu {

int max_threads() { return omp_get_max_threads(); }

OneThread::OneThread() : before_(omp_in_parallel() ? 0 : omp_get_max_threads()) {
  if (before_ > 1) omp_set_num_threads(1);
}
OneThread::~OneThread() {
  if (before_ > 1) omp_set_num_threads(before_);
}

namespace detail {
namespace {

// The OpenMP runtime is not built for ThreadSanitizer: its fork and join are told to it here. The functions that
// contain the fork itself are not instrumented; everything they call is.
struct ForkJoin {
  char forked = 0;
  char joined = 0;
#if defined(__SANITIZE_THREAD__)
  void before_fork() { __tsan_release(&forked); }
  void thread_begins() { __tsan_acquire(&forked); }
  void thread_ends() { __tsan_release(&joined); }
  void after_join() { __tsan_acquire(&joined); }
#else
  void before_fork() {}
  void thread_begins() {}
  void thread_ends() {}
  void after_join() {}
#endif
};

}  // namespace

#if defined(__SANITIZE_THREAD__)
__attribute__((no_sanitize("thread")))
#endif
void run_items(std::int64_t items, void (*body)(void*, std::int64_t, int), void* context) {
  if (omp_get_max_threads() == 1 || omp_in_parallel()) {
    for (std::int64_t item = 0; item < items; ++item) body(context, item, 0);
    return;
  }
  // Two threads even for one item: inside a parallel region the libraries use the calling thread only, and so add
  // up in the same order however many threads there are.
  // Read by the pragma alone. NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores)
  const int threads = static_cast<int>(std::clamp<std::int64_t>(items, 2, omp_get_max_threads()));
  std::atomic<std::int64_t> next{0};
  ForkJoin order;
  order.before_fork();
#pragma omp parallel num_threads(threads)
  {
    order.thread_begins();
    // A thread of OpenMP's does nothing but this: once is enough.
    if (omp_get_thread_num() != 0) hold_signals_for_good();
    for (std::int64_t item = next.fetch_add(1, std::memory_order_relaxed); item < items;
         item = next.fetch_add(1, std::memory_order_relaxed))
      body(context, item, omp_get_thread_num());
    order.thread_ends();
  }
  order.after_join();
}

}  // namespace detail
}  // namespace engram::cpu

#pragma once
/// The one way to use several threads. Work is cut into items by shape alone, never by the number of threads, and
/// every item writes its own memory; so results do not depend on the threads.

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace engram::cpu {

namespace detail {
/// Calls body(context, item, thread) for every item < items, on several threads when there is more than one and none
/// are running already.
void run_items(std::int64_t items, void (*body)(void* context, std::int64_t item, int thread), void* context);
}  // namespace detail

/// How many threads parallel_items may use; `thread` arguments are below it.
int max_threads();

/// Calls body(item, thread) for 0 <= item < items; `thread` selects scratch memory, never results.
template <class Body>
void parallel_items_on_threads(std::int64_t items, Body&& body) {
  detail::run_items(
      items,
      [](void* context, std::int64_t item, int thread) {
        (*static_cast<std::remove_reference_t<Body>*>(context))(item, thread);
      },
      const_cast<void*>(static_cast<const void*>(&body)));
}

/// Calls body(item) for 0 <= item < items. Threads take items one by one in order, so put long ones first. An exception
/// of the body ends the program: kernels check before they start.
template <class Body>
void parallel_items(std::int64_t items, Body&& body) {
  if (items == 1) {
    body(std::int64_t{0});
    return;
  }
  parallel_items_on_threads(items, [&body](std::int64_t item, int) { body(item); });
}

/// Calls body(begin, end) for the chunks [0, chunk), [chunk, 2 chunk), ... of [0, count).
template <class Body>
void parallel_chunks(std::int64_t count, std::int64_t chunk, Body&& body) {
  parallel_items((count + chunk - 1) / chunk,
                 [&](std::int64_t item) { body(item * chunk, std::min(count, (item + 1) * chunk)); });
}

/// Elements of one chunk in element-wise loops: 64 KiB of f32, enough work to be worth handing out.
inline constexpr std::int64_t kElementChunk = 16384;

/// Rows of one chunk so that a chunk has about kElementChunk elements; depends on the row length only.
constexpr std::int64_t row_chunk(std::int64_t row_length) {
  return std::max<std::int64_t>(1, kElementChunk / std::max<std::int64_t>(1, row_length));
}

/// While it lives, a library that is called on this thread starts no threads of its own.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;  ///< the number of threads to restore; 0: none
};

}  // namespace engram::cpu

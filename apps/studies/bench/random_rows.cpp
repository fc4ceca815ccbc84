#include "apps/studies/bench/random_rows.hpp"

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <numeric>
#include <string>
#include <thread>

#include "core/error.hpp"

namespace engram {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kPage = 4096;

template <class T>
void add_plain(const T* values, std::int64_t width, std::span<const std::int64_t> ids, std::span<const float> weights,
               float* __restrict y) {
  std::fill_n(y, width, 0.0f);
  for (std::size_t j = 0; j < ids.size(); ++j) {
    const T* __restrict row = values + ids[j] * width;
    const float weight = weights[j];
    for (std::int64_t c = 0; c < width; ++c) y[c] += weight * static_cast<float>(row[c]);
  }
}

}  // namespace

/// SplitMix64: Steele, Lea, Flood: "Fast splittable pseudorandom number generators" (2014).
std::uint64_t RandomRows::next() {
  std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

void RandomRows::draw(std::span<std::int64_t> ids) {
  for (std::int64_t& id : ids) id = static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(rows_));
}

void RandomRows::draw_distinct(std::span<std::int64_t> ids) {
  if (static_cast<std::int64_t>(ids.size()) > rows_)
    throw Error(text("bench: distinct rows must be at most the ", rows_, " of the table, got ", ids.size()));
  if (order_.empty()) {
    order_.resize(static_cast<std::size_t>(rows_));
    std::iota(order_.begin(), order_.end(), std::int64_t{0});
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::swap(order_[i], order_[i + next() % (order_.size() - i)]);
    ids[i] = order_[i];
  }
}

OrdinaryPages::OrdinaryPages(std::size_t bytes) : data_(nullptr), bytes_(std::max<std::size_t>(1, bytes)) {
  if (posix_memalign(&data_, kPage, bytes_) != 0)
    throw OutOfMemory(text("bench: the host has no ", bytes, " bytes left\n  fewer --slots need less"));
#if defined(MADV_NOHUGEPAGE)
  madvise(data_, bytes_, MADV_NOHUGEPAGE);
#endif
  std::memset(data_, 0, bytes_);
}
OrdinaryPages::~OrdinaryPages() { std::free(data_); }

void on_threads(int threads, std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& body) {
  if (threads <= 1) return body(0, count);
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread)
    others.emplace_back(
        [&body, count, threads, thread] { body(count * thread / threads, count * (thread + 1) / threads); });
  body(0, count / threads);
  for (std::thread& other : others) other.join();
}

void plain_weighted_rows(const void* values, DType dtype, std::int64_t width, std::span<const std::int64_t> ids,
                         std::span<const float> weights, std::int64_t reads, float* y, int threads) {
  const auto of_row = static_cast<std::size_t>(reads);
  on_threads(threads, static_cast<std::int64_t>(ids.size()) / reads, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const auto first = static_cast<std::size_t>(r * reads);
      const auto own = ids.subspan(first, of_row);
      const auto factors = weights.subspan(first, of_row);
      if (dtype == DType::bf16)
        add_plain(static_cast<const bf16*>(values), width, own, factors, y + r * width);
      else
        add_plain(static_cast<const float*>(values), width, own, factors, y + r * width);
    }
  });
}

std::uint64_t read_in_order(const void* memory, std::size_t bytes, int threads) {
  const auto* const words = static_cast<const std::uint64_t*>(memory);
  std::atomic<std::uint64_t> all = 0;
  on_threads(threads, static_cast<std::int64_t>(bytes / sizeof(std::uint64_t)),
             [&](std::int64_t begin, std::int64_t end) {
               all += std::accumulate(words + begin, words + end, std::uint64_t{0});
             });
  return all;
}

bool flush_rows([[maybe_unused]] const void* table, [[maybe_unused]] std::size_t row_bytes,
                [[maybe_unused]] std::span<const std::int64_t> ids, [[maybe_unused]] int threads) {
#if defined(__SSE2__)
  const auto* const bytes = static_cast<const std::byte*>(table);
  on_threads(threads, static_cast<std::int64_t>(ids.size()), [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      const std::byte* row = bytes + static_cast<std::size_t>(ids[i]) * row_bytes;
      for (std::size_t at = 0; at < row_bytes; at += kLine) {
#if defined(__CLFLUSHOPT__)
        _mm_clflushopt(const_cast<std::byte*>(row + at));
#else
        _mm_clflush(row + at);
#endif
      }
    }
    _mm_mfence();
  });
  return true;
#else
  return false;
#endif
}

std::size_t available_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string name, unit; file >> name;) {
    std::size_t kibibytes = 0;
    file >> kibibytes;
    if (name == "MemAvailable:") return kibibytes * 1024;
    std::getline(file, unit);
  }
  return 0;
}

}  // namespace engram

#pragma once
/// What reading rows of a large table anywhere is compared with: a plain loop over ordinary pages, and
/// reading in order. Neither is a kernel of the library.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/backend.hpp"
#include "core/tensor.hpp"

namespace engram {

/// Ids of rows in [0, rows) for the passes of a bench, from a fixed seed.
class RandomRows {
 public:
  explicit RandomRows(std::int64_t rows) : rows_(rows) {}
  /// Uniform, with repetition.
  void draw(std::span<std::int64_t> ids);
  /// Uniform among lists without repetition; at most as many as there are rows.
  void draw_distinct(std::span<std::int64_t> ids);

 private:
  std::uint64_t next();
  std::int64_t rows_;
  std::uint64_t state_ = 1;
  std::vector<std::int64_t> order_;  // of all rows; made by the first draw_distinct
};

/// Memory in pages of the usual size: no huge ones, whatever the system is set to. Touched, and zero.
class OrdinaryPages {
 public:
  /// Throws OutOfMemory.
  explicit OrdinaryPages(std::size_t bytes);
  ~OrdinaryPages();
  OrdinaryPages(const OrdinaryPages&) = delete;
  OrdinaryPages& operator=(const OrdinaryPages&) = delete;
  void* data() const { return data_; }

 private:
  void* data_;
  std::size_t bytes_;
};

/// Calls body(begin, end) for `threads` equal parts of [0, count), each in a thread of its own, and waits for them.
void on_threads(int threads, std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& body);

/// y[r, :] = sum over j of weights[r, j] values[ids[r, j], :] as one writes it first: f32 or bf16 values, f32 sums.
void plain_weighted_rows(const void* values, DType dtype, std::int64_t width, std::span<const std::int64_t> ids,
                         std::span<const float> weights, std::int64_t reads, float* y, int threads);

/// Reads memory from front to back, whole words of it, and adds them up: the fastest that a processor reads. Returns
/// the sum, so that nobody leaves the reading out.
std::uint64_t read_in_order(const void* memory, std::size_t bytes, int threads);

/// Puts the rows out of all caches. false: this processor has no instruction for it, and nothing happened.
bool flush_rows(const void* table, std::size_t row_bytes, std::span<const std::int64_t> ids, int threads);

/// Bytes that the system can still give, 0 where it does not say.
std::size_t available_bytes();

}  // namespace engram

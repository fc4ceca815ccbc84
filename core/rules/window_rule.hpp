#pragma once
/// Which rows a position of a recurrent model's readout sees: a short window that ends before it (or with it), and that
/// begins no earlier than the sequence. [key-value-predict 2].
///
/// Rows are those of an extended tensor [B, C + M, ...]: C carried rows of earlier chunks, then the M positions of the
/// block. `preceding` says for every position of the block how many positions before it belong to its sequence, also
/// over the borders of chunks: 0 at the first one.

#include <cstdint>

#include "core/host_device.hpp"

namespace engram {

struct WindowRule {
  std::int64_t carried = 0;    ///< C, at least 0
  std::int64_t block = 0;      ///< M
  std::int64_t window = 1;     ///< L, at least 1: columns of the weights, the newest row in the last one
  bool with_present = false;   ///< the newest row is the position's own; else the one before
  bool count_missing = false;  ///< the columns without a row count, as keys and values of zeros

  ENGRAM_HD std::int64_t rows() const { return carried + block; }
  /// One more than the newest row that position t may see.
  ENGRAM_HD std::int64_t end(std::int64_t t) const { return carried + t + (with_present ? 1 : 0); }
  /// How many rows position t sees: those from end(t) - seen to end(t) - 1, in the last `seen` columns.
  ENGRAM_HD std::int64_t seen(std::int64_t t, std::int32_t preceding) const {
    std::int64_t count = static_cast<std::int64_t>(preceding) + (with_present ? 1 : 0);
    if (count > end(t)) count = end(t);
    if (count > window) count = window;
    return count < 0 ? 0 : count;
  }
  /// The positions that see a row lie from its first reader to before end_of_readers: those of them whose sequence it
  /// belongs to.
  ENGRAM_HD std::int64_t first_reader(std::int64_t row) const {
    const std::int64_t t = row - carried + (with_present ? 0 : 1);
    return t < 0 ? 0 : t;
  }
  ENGRAM_HD std::int64_t end_of_readers(std::int64_t row) const {
    const std::int64_t t = row - carried + (with_present ? 0 : 1) + window;
    return t < block ? t : block;
  }
  /// Where a row stands among the weights of position t, which must see it.
  ENGRAM_HD std::int64_t column(std::int64_t t, std::int64_t row) const { return window - (end(t) - row); }
};

}  // namespace engram

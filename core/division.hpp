#pragma once
/// How a tensor is divided over ranks (core/communicator.hpp).

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace engram {

/// Of every row of the whole tensor, rank q holds the elements before ends[q], from ends[q - 1] on, the first from 0:
/// perhaps none. What it holds of all rows lies one after the other.
struct Division {
  Shape shape;  ///< of the whole tensor
  DType dtype = DType::f32;
  std::vector<std::int64_t> ends;  ///< one for each rank, ascending; the last one is row_length()
  std::int64_t row = 0;            ///< elements of a row; 0: the whole tensor is one row

  std::int64_t row_length() const { return row > 0 ? row : shape.count(); }
  bool one_row() const { return row_length() == shape.count(); }
  std::int64_t begin(int rank) const { return rank == 0 ? 0 : ends[static_cast<std::size_t>(rank) - 1]; }
  std::int64_t end(int rank) const { return ends[static_cast<std::size_t>(rank)]; }
  /// How many of the first `count` elements of the whole tensor a rank holds.
  std::int64_t held_before(int rank, std::int64_t count) const {
    if (count == 0) return 0;
    const std::int64_t width = end(rank) - begin(rank);
    return count / row_length() * width + std::clamp<std::int64_t>(count % row_length() - begin(rank), 0, width);
  }
};

/// All of it on one rank of so many.
inline Division all_on(int rank, int ranks, Shape shape, DType dtype) {
  Division division{.shape = shape, .dtype = dtype, .ends = std::vector<std::int64_t>(static_cast<std::size_t>(ranks))};
  for (int q = rank; q < ranks; ++q) division.ends[static_cast<std::size_t>(q)] = shape.count();
  return division;
}

/// Equal shares of the columns of a matrix, whose width is a multiple of the number of ranks.
inline Division in_columns(int ranks, Shape shape, DType dtype) {
  Division division{.shape = shape, .dtype = dtype, .ends = {}, .row = shape[-1]};
  for (int q = 1; q <= ranks; ++q) division.ends.push_back(shape[-1] / ranks * q);
  return division;
}

}  // namespace engram

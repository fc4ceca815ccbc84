#pragma once
/// How a tensor is divided over ranks (core/communicator.hpp).

#include <cstdint>
#include <vector>

#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace engram {

/// Rank q holds the elements of the whole tensor before ends[q], from ends[q - 1] on, the first from 0: perhaps none.
struct Division {
  Shape shape;  ///< of the whole tensor
  DType dtype = DType::f32;
  std::vector<std::int64_t> ends;  ///< one for each rank, ascending; the last one is shape.count()

  std::int64_t begin(int rank) const { return rank == 0 ? 0 : ends[static_cast<std::size_t>(rank) - 1]; }
  std::int64_t end(int rank) const { return ends[static_cast<std::size_t>(rank)]; }
};

/// All of it on one rank of so many.
inline Division all_on(int rank, int ranks, Shape shape, DType dtype) {
  Division division{.shape = shape, .dtype = dtype, .ends = std::vector<std::int64_t>(static_cast<std::size_t>(ranks))};
  for (int q = rank; q < ranks; ++q) division.ends[static_cast<std::size_t>(q)] = shape.count();
  return division;
}

}  // namespace engram

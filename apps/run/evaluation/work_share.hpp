#pragma once
/// How the work of an evaluation is cut, and which rank does what. It is cut by shapes alone: what a part finds has the
/// same bits whoever computes it, and findings are put together in the order of the blocks and their rows. So results
/// have the same bits for every number of ranks.

#include <cstdint>

#include "core/communicator.hpp"

namespace engram {

struct WorkShare {
  /// The ranks that share the work: all evaluate the same plan with the same weights, and all find everything. nullptr:
  /// this one does it all.
  Communicator* ranks = nullptr;
  /// Streams that remember: into so many pieces of neighbouring rows is every block cut, one computed after the other,
  /// each with a past of its own. At least 1, and at most the rows of every block.
  std::int64_t pieces = 1;
  /// Blocks that know nothing of each other: they stay whole, whatever `pieces` is, and ranks take them in turn.
  bool blocks_apart = false;

  int rank() const { return ranks != nullptr ? ranks->rank() : 0; }
  int size() const { return ranks != nullptr ? ranks->size() : 1; }
  /// Blocks that are computed at a time.
  std::int64_t blocks_at_once() const { return blocks_apart ? size() : 1; }
  /// The first row of a piece, of a block of so many.
  std::int64_t first_row(std::int64_t piece, std::int64_t rows) const { return rows * piece / pieces; }
  /// The first of a rank's parts, of so many: the ranks of smaller numbers have more where they do not divide evenly.
  std::int64_t first_part(int of_rank, std::int64_t parts) const { return (parts * of_rank + size() - 1) / size(); }
  std::int64_t own_begin(std::int64_t parts) const { return first_part(rank(), parts); }
  std::int64_t own_end(std::int64_t parts) const { return first_part(rank() + 1, parts); }
};

}  // namespace engram

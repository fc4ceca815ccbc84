#pragma once
/// How the work of an evaluation is cut, and which rank does what. It is cut by shapes alone: what a part finds has the
/// same bits whoever computes it, and findings are put together in the order of the blocks and their rows. So results
/// have the same bits for every number of ranks.

#include <algorithm>
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
  /// Tokens of a whole block, about: several ranks read as many blocks between two exchanges as make some thousands. 0:
  /// one block.
  std::int64_t block_tokens = 0;
  /// Blocks that know nothing of each other: they stay whole, whatever `pieces` is, and ranks take them in turn.
  bool blocks_apart = false;

  int rank() const { return ranks != nullptr ? ranks->rank() : 0; }
  int size() const { return ranks != nullptr ? ranks->size() : 1; }
  /// Blocks between two exchanges, which cost little beside them so: on a busy machine each may have to wait for a
  /// core.
  std::int64_t blocks_at_once() const {
    constexpr std::int64_t kTokens = 4096;
    if (size() == 1) return 1;
    if (blocks_apart) return size();
    return block_tokens > 0 ? std::max<std::int64_t>(1, kTokens / block_tokens) : 1;
  }
  /// Parts of so many blocks: ranks take whole blocks, or the same pieces of each of them.
  std::int64_t parts_of(std::int64_t blocks) const { return blocks_apart ? blocks : pieces; }
  /// The first row of a piece, of a block of so many.
  std::int64_t first_row(std::int64_t piece, std::int64_t rows) const { return rows * piece / pieces; }
  /// The first of a rank's parts, of so many: the ranks of smaller numbers have more where they do not divide evenly.
  std::int64_t first_part(int of_rank, std::int64_t parts) const { return (parts * of_rank + size() - 1) / size(); }
  std::int64_t own_begin(std::int64_t parts) const { return first_part(rank(), parts); }
  std::int64_t own_end(std::int64_t parts) const { return first_part(rank() + 1, parts); }
};

}  // namespace engram

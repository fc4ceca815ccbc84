#pragma once
/// Sums over the pieces of a split batch, by a fixed binary tree over the numbers of the pieces: neighbours in pairs,
/// level by level, a last one without a partner going up as it is. Ranks that have some of the pieces each sum theirs,
/// and the ranks' sums by the same tree, to the bits that one rank has of all pieces.

#include <cstdint>
#include <vector>

#include "core/allocator.hpp"
#include "core/step.hpp"

namespace engram {

class PieceSums {
 public:
  PieceSums() = default;
  /// Every one of `pieces` pieces leaves what it has in the same tensors, f32 or f64. Takes memory for as many further
  /// copies of them as the tree has levels: none for one piece.
  PieceSums(const std::vector<Tensor>& tensors, std::int64_t pieces, Allocator& allocator);

  /// Before the first piece.
  void begin() { kept_ = 0; }
  /// After every piece but the last one: what is in the tensors is kept, and they may be written anew.
  void keep(Step& step);
  /// After the last piece: elements [begin, end) of a tensor become the sums over all pieces. Once for each element.
  void finish(Step& step, std::size_t tensor, std::int64_t begin, std::int64_t end) const;
  void finish(Step& step) const;

 private:
  std::vector<Tensor> tensors_;               // flat
  std::vector<std::vector<Tensor>> waiting_;  // of level k: sums of 2^k pieces, where bit k of kept_ is set
  std::uint64_t kept_ = 0;                    // pieces
};

}  // namespace engram

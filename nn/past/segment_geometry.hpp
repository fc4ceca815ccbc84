#pragma once
/// How far back the queries of a block see when layers remember a fixed number of positions before it. One for the
/// pasts of all layers of a model. [transformer-xl 1.5, 1.7].

#include <cstdint>
#include <map>
#include <utility>

#include "core/rules/head_windows.hpp"
#include "nn/past/past_place.hpp"
#include "nn/past/segment_context.hpp"

namespace engram {

class SegmentGeometry {
 public:
  /// Makes that of H heads. The place is that of the pasts, and of the indices of packed_rows().
  SegmentGeometry(const PastPlace& place, const SegmentContext& context, std::int64_t heads)
      : place_(place), context_(context), heads_(heads) {}

  const PastPlace& place() const { return place_; }
  const SegmentContext& context() const { return context_; }
  /// The farthest distance that a query of a block of S positions may see: M + S - 1 where all is visible.
  std::int64_t farthest(std::int64_t block) const;
  /// Windows of every head; made once for every length of a block.
  const HeadWindows& windows(std::int64_t block);
  /// Positions of the past that exist when the stream had so many before the block.
  std::int64_t present(std::int64_t seen) const;
  /// Where the rows of a packed past (HeadWindows) lie among the heads' rows of C positions: element
  /// B H (h window + ...) + r is the row (b C + C - window + r) H + h of [B C H, depth]. Places before the first
  /// position have row 0: past_valid hides them. i32 [B windows.total]; made once for every block length and C >= 1.
  const Tensor& packed_rows(std::int64_t block, std::int64_t positions);

 private:
  PastPlace place_;
  SegmentContext context_;
  std::int64_t heads_;
  std::map<std::int64_t, HeadWindows> windows_;                          // by longest window
  std::map<std::pair<std::int64_t, std::int64_t>, Tensor> packed_rows_;  // by longest window and positions
};

}  // namespace engram

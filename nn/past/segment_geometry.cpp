#include "nn/past/segment_geometry.hpp"

#include <algorithm>
#include <vector>

namespace engram {

std::int64_t SegmentGeometry::farthest(std::int64_t block) const {
  switch (context_.visibility) {
    case Visibility::last_memory:
      return context_.memory - 1;
    case Visibility::last_memory_plus_1:
      return context_.memory;
    default:
      return context_.memory + block - 1;
  }
}

const HeadWindows& SegmentGeometry::windows(std::int64_t block) {
  const std::int64_t window = farthest(block);
  const auto found = windows_.find(window);
  if (found != windows_.end()) return found->second;
  const std::vector<std::int32_t> every(static_cast<std::size_t>(heads_), static_cast<std::int32_t>(window));
  return windows_.emplace(window, HeadWindows(every)).first->second;
}

std::int64_t SegmentGeometry::present(std::int64_t seen) const {
  return context_.start == MemoryStart::zeros ? context_.memory : std::min(seen, context_.memory);
}

const Tensor& SegmentGeometry::packed_rows(std::int64_t block, std::int64_t positions) {
  const std::int64_t window = farthest(block);
  Tensor& rows = packed_rows_[{window, positions}];
  if (rows) return rows;
  std::vector<std::int32_t> host;
  for (std::int64_t head = 0; head < heads_; ++head)
    for (std::int64_t stream = 0; stream < place_.streams; ++stream)
      for (std::int64_t row = 0; row < window; ++row) {
        const std::int64_t position = positions - window + row;
        host.push_back(position < 0 ? 0 : static_cast<std::int32_t>((stream * positions + position) * heads_ + head));
      }
  rows = place_.with(DType::i32).empty({static_cast<std::int64_t>(host.size())});
  place_.backend.copy(rows.raw(), host.data(), rows.bytes(), CopyKind::host_to_device);
  return rows;
}

}  // namespace engram

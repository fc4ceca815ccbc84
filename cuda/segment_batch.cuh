#pragma once
/// The tensors of a parameter group as an argument of a kernel: up to 64 segments in one launch, cut into chunks that
/// lie inside one segment each, a block per chunk. No table has to be copied to the device, so a captured step holds
/// it.

#include <algorithm>
#include <cstdint>

#include "core/kernels/optimizer.hpp"
#include "cuda/launch.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

struct SegmentChunk {
  int segment;  ///< in its batch
  std::int64_t begin, end;
};

struct SegmentBatch {
  static constexpr int kMost = 64;

  int count = 0;
  std::int64_t elements;            ///< of a chunk
  int first_chunk[kMost + 1] = {};  ///< of each segment; the last one: of all
  std::int64_t offset[kMost];
  std::int64_t length[kMost];

  /// Chunk number `number`, found by halving.
  __device__ SegmentChunk chunk(unsigned number) const {
    const int wanted = static_cast<int>(number);
    int low = 0, high = count;  // first_chunk[low] <= wanted < first_chunk[high]
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (first_chunk[middle] <= wanted)
        low = middle;
      else
        high = middle;
    }
    const std::int64_t begin = (wanted - first_chunk[low]) * elements;
    const std::int64_t end = begin + elements < length[low] ? begin + elements : length[low];
    return {low, offset[low] + begin, offset[low] + end};
  }
};

/// Calls body(number of the batch's first segment, batch) until every segment was met. Chunks have so many elements.
template <class Body>
void for_segment_batches(const SegmentTable& segments, std::int64_t elements, Body&& body) {
  for (std::size_t first = 0; first < segments.size(); first += SegmentBatch::kMost) {
    SegmentBatch batch;
    batch.elements = elements;
    batch.count = static_cast<int>(std::min<std::size_t>(SegmentBatch::kMost, segments.size() - first));
    for (int s = 0; s < batch.count; ++s) {
      const Segment& segment = segments[first + static_cast<std::size_t>(s)];
      batch.offset[s] = segment.offset;
      batch.length[s] = segment.count;
      batch.first_chunk[s + 1] = batch.first_chunk[s] + static_cast<int>((segment.count + elements - 1) / elements);
    }
    body(first, batch);
  }
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

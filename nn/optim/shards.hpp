#pragma once
/// Which numbers of a store's blocks each rank updates, and keeps the optimiser's state of. Rajbhandari et al.: "ZeRO:
/// Memory Optimizations Toward Training Trillion Parameter Models" (2020), stage 1: values and gradients are whole on
/// every rank, the state is divided.
///
/// A group's block is cut into buckets of whole entries, which leave for the other ranks together, and every bucket is
/// divided over all ranks, so that all receive alike. Borders lie between the chunks that norms are summed in
/// (kSegmentChunk), so that no result depends on how many ranks there are.

#include <cstdint>
#include <string_view>
#include <vector>

#include "autograd/parameter_store.hpp"

namespace engram {

/// A part of a group's block, in elements of the block, and its chunks, numbered over the group's segments in order.
struct Bucket {
  std::size_t group = 0;
  std::int64_t begin = 0, end = 0;
  std::vector<std::int64_t> ends;  ///< of each rank's part, the last one `end`
  std::int64_t first_chunk = 0;
  std::vector<std::int64_t> chunk_ends;  ///< of each rank's part

  std::int64_t begin_of(int rank) const { return rank == 0 ? begin : ends[static_cast<std::size_t>(rank) - 1]; }
  std::int64_t end_of(int rank) const { return ends[static_cast<std::size_t>(rank)]; }
  std::int64_t first_chunk_of(int rank) const {
    return rank == 0 ? first_chunk : chunk_ends[static_cast<std::size_t>(rank) - 1];
  }
  std::int64_t chunk_end_of(int rank) const { return chunk_ends[static_cast<std::size_t>(rank)]; }
};

/// Buckets of fewer bytes are not worth an exchange of their own.
inline constexpr std::int64_t kBucketBytes = std::int64_t{8} << 20;

/// The buckets of a placed store, group by group. A bucket begins where the part of a model that entries belong to
/// ("layers.7", "embedding") is another than before, and the bucket before it has that many bytes. One rank: one bucket
/// for each group. `ranks`: at least 1.
std::vector<Bucket> make_buckets(const ParameterStore& store, int ranks, std::int64_t bucket_bytes = kBucketBytes);
/// Those of a store that would be placed with these groups in this dtype.
std::vector<Bucket> make_buckets(const std::vector<GroupLayout>& groups, DType dtype, int ranks,
                                 std::int64_t bucket_bytes = kBucketBytes);
/// The part of a model that an entry belongs to, by its name: "layers.7" of "layers.7.attention.query", "embedding" of
/// "embedding.weight".
std::string_view part_of_model(std::string_view name);

/// What of a group's segments lies in [begin, end) of its block, counted from `begin`.
struct SegmentRange {
  std::size_t first = 0;  ///< number of the first one in the group
  SegmentTable segments;
};
SegmentRange segments_in(const SegmentTable& group, std::int64_t begin, std::int64_t end);

}  // namespace engram

#include "nn/optim/shards.hpp"

#include <algorithm>
#include <span>

#include "core/dtype.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

/// Divides the bucket, whose entries are `segments`, over the ranks: a rank's part begins with the first chunk that is
/// not before its share of the elements.
void divide(Bucket& bucket, std::span<const Segment> segments, int ranks) {
  std::int64_t before = bucket.first_chunk;  // chunks before those of segment `s`
  std::size_t s = 0;
  for (int q = 1; q <= ranks; ++q) {
    // In double: a block has fewer than 2^53 elements.
    const double share = static_cast<double>(q) / static_cast<double>(ranks);
    const auto wanted =
        bucket.begin + static_cast<std::int64_t>(static_cast<double>(bucket.end - bucket.begin) * share);
    std::int64_t chunk = 0;  // of segment `s`
    for (; s < segments.size(); ++s) {
      const Segment& segment = segments[s];
      chunk = wanted <= segment.offset ? 0 : (wanted - segment.offset + kSegmentChunk - 1) / kSegmentChunk;
      if (q < ranks && chunk < chunks_of(segment)) break;
      before += chunks_of(segment);
    }
    const bool inside = s < segments.size();
    bucket.chunk_ends.push_back(inside ? before + chunk : before);
    bucket.ends.push_back(inside ? segments[s].offset + chunk * kSegmentChunk : bucket.end);
  }
}

}  // namespace

std::string_view part_of_model(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || !name.starts_with("layers.")) return name.substr(0, dot);
  return name.substr(0, name.find('.', dot + 1));
}

std::vector<Bucket> make_buckets(const ParameterStore& store, int ranks, std::int64_t bucket_bytes) {
  std::vector<GroupLayout> groups;
  for (const ParameterGroup& group : store.groups())
    groups.push_back({group.name, group.parameters, group.segments, group.values.count()});
  return make_buckets(groups, store.dtype(), ranks, bucket_bytes);
}

std::vector<Bucket> make_buckets(const std::vector<GroupLayout>& groups, DType dtype, int ranks,
                                 std::int64_t bucket_bytes) {
  if (ranks < 1) throw Error(text("buckets: ranks must be at least 1, got ", ranks));
  const auto number_bytes = static_cast<std::int64_t>(size_of(dtype));
  std::vector<Bucket> buckets;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const GroupLayout& group = groups[g];
    Bucket open{.group = g};
    std::size_t first = 0;  // segment of the open bucket
    const auto close = [&](std::size_t next, std::int64_t end) {
      open.end = end;
      divide(open, std::span(group.segments).subspan(first, next - first), ranks);
      first = next;
      const std::int64_t chunks = open.chunk_ends.back();
      buckets.push_back(std::move(open));
      open = {.group = g, .begin = end, .first_chunk = chunks};
    };
    for (std::size_t i = 1; i < group.segments.size(); ++i) {
      const std::int64_t offset = group.segments[i].offset;
      const bool large = (offset - open.begin) * number_bytes >= bucket_bytes;
      if (ranks > 1 && large &&
          part_of_model(group.parameters[i]->name()) != part_of_model(group.parameters[i - 1]->name()))
        close(i, offset);
    }
    close(group.segments.size(), group.count);
  }
  return buckets;
}

SegmentRange segments_in(const SegmentTable& group, std::int64_t begin, std::int64_t end) {
  SegmentRange range{.first = group.size(), .segments = {}};
  for (std::size_t s = 0; s < group.size(); ++s) {
    const std::int64_t from = std::max(begin, group[s].offset), to = std::min(end, group[s].offset + group[s].count);
    if (from >= to) continue;
    range.first = std::min(range.first, s);
    // What is empty between others keeps its number.
    while (range.first + range.segments.size() < s) range.segments.push_back({from - begin, 0});
    range.segments.push_back({from - begin, to - from});
  }
  return range;
}

}  // namespace engram

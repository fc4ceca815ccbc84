#include "nn/optim/shards.hpp"

#include <algorithm>
#include <string_view>

#include "core/dtype.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

/// "layers.7" of "layers.7.attention.query", "embedding" of "embedding.weight": the part of the model.
std::string_view part_of(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || !name.starts_with("layers.")) return name.substr(0, dot);
  return name.substr(0, name.find('.', dot + 1));
}

/// Divides the chunks [bucket.first_chunk, chunk_end), whose beginnings are in `chunks`, over the ranks: a rank's part
/// begins with the first chunk that is not before its share of the elements.
void divide(Bucket& bucket, const std::vector<std::int64_t>& chunks, std::int64_t chunk_end, int ranks) {
  std::int64_t chunk = bucket.first_chunk;
  for (int q = 1; q <= ranks; ++q) {
    // In double: a block has fewer than 2^53 elements.
    const double share = static_cast<double>(q) / static_cast<double>(ranks);
    const auto wanted =
        bucket.begin + static_cast<std::int64_t>(static_cast<double>(bucket.end - bucket.begin) * share);
    while (chunk < chunk_end && (q == ranks || chunks[static_cast<std::size_t>(chunk)] < wanted)) ++chunk;
    bucket.chunk_ends.push_back(chunk);
    bucket.ends.push_back(chunk < chunk_end ? chunks[static_cast<std::size_t>(chunk)] : bucket.end);
  }
}

}  // namespace

std::vector<Bucket> make_buckets(const ParameterStore& store, int ranks, std::int64_t bucket_bytes) {
  if (ranks < 1) throw Error(text("buckets: ranks must be at least 1, got ", ranks));
  std::vector<Bucket> buckets;
  for (std::size_t g = 0; g < store.groups().size(); ++g) {
    const ParameterGroup& group = store.groups()[g];
    const auto number_bytes = static_cast<std::int64_t>(size_of(group.values.dtype()));
    std::vector<std::int64_t> chunks;  // where they begin
    Bucket open{.group = g};
    const auto close = [&](std::int64_t end) {
      open.end = end;
      const auto chunk_end = static_cast<std::int64_t>(chunks.size());
      divide(open, chunks, chunk_end, ranks);
      buckets.push_back(std::move(open));
      open = {.group = g, .begin = end, .first_chunk = chunk_end};
    };
    for (std::size_t i = 0; i < group.segments.size(); ++i) {
      const Segment& segment = group.segments[i];
      const bool large = (segment.offset - open.begin) * number_bytes >= bucket_bytes;
      if (ranks > 1 && i > 0 && large &&
          part_of(group.parameters[i]->name()) != part_of(group.parameters[i - 1]->name()))
        close(segment.offset);
      for (std::int64_t at = 0; at < segment.count; at += kSegmentChunk) chunks.push_back(segment.offset + at);
    }
    close(group.values.count());
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

#include "nn/layers/token_partition.hpp"

#include <algorithm>
#include <bit>

#include "core/error.hpp"

namespace engram {

std::int64_t TokenPartition::padded_count(std::int64_t count) {
  constexpr std::int64_t kShortest = 64;
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(count)));
  const std::int64_t unit = std::max(kShortest, power / 4);
  return (count + unit - 1) / unit * unit;
}

std::int64_t TokenPartition::most_values(const VocabularyClusters& clusters, std::int64_t rows) {
  // All clusters together: at most a quarter more than rows, or 63 more each.
  const std::int64_t padded = rows + rows / 4 + 64 * static_cast<std::int64_t>(clusters.count());
  return 2 * rows + 4 * padded;
}

TokenPartition::List TokenPartition::append(std::int64_t count) {
  const List list{static_cast<std::int64_t>(values_.size()), count};
  values_.resize(values_.size() + static_cast<std::size_t>(count));
  return list;
}

void TokenPartition::assign(const VocabularyClusters& clusters, std::span<const std::int32_t> inputs,
                            std::span<const std::int32_t> targets, bool padded) {
  const auto rows = static_cast<std::int64_t>(inputs.size()), scored = static_cast<std::int64_t>(targets.size());
  if (scored > rows)
    throw Error(text("token partition: there must be at most as many targets as inputs, got ", scored, " for ", rows));
  const auto length = [padded](std::int64_t count) { return padded && count > 0 ? padded_count(count) : count; };
  values_.clear();
  clusters_.assign(clusters.count(), Cluster{});
  const auto at = [this](List list, std::int64_t place) -> std::int32_t& {
    return values_[static_cast<std::size_t>(list.begin + place)];
  };

  used_.assign(clusters.count(), 0);
  for (const std::int32_t word : inputs) ++used_[clusters.of(word)];
  places_ = append(rows);
  for (std::size_t i = 0; i < clusters.count(); ++i) clusters_[i].inputs = append(length(used_[i]));
  used_.assign(clusters.count(), 0);
  const std::int64_t first_place = clusters_[0].inputs.begin;
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t word = inputs[static_cast<std::size_t>(row)];
    const std::size_t cluster = clusters.of(word);
    const List list = clusters_[cluster].inputs;
    const std::int64_t place = used_[cluster]++;
    at(list, place) = static_cast<std::int32_t>(word - clusters[cluster].first);
    at(places_, row) = static_cast<std::int32_t>(list.begin - first_place + place);
  }

  head_targets_ = {};
  if (targets.empty()) return;
  head_targets_ = append(scored);
  for (const std::int32_t word : targets) {
    const std::size_t cluster = clusters.of(word);
    if (cluster > 0) ++clusters_[cluster].scored;
  }
  for (std::size_t i = 1; i < clusters.count(); ++i) {
    Cluster& tail = clusters_[i];
    const std::int64_t count = length(tail.scored);
    tail.rows = append(count);
    tail.targets = append(count);
    tail.counted = append(count);
  }
  used_.assign(clusters.count(), 0);
  for (std::int64_t row = 0; row < scored; ++row) {
    const std::int64_t word = targets[static_cast<std::size_t>(row)];
    const std::size_t cluster = clusters.of(word);
    at(head_targets_, row) = static_cast<std::int32_t>(cluster == 0 ? word : clusters.head_slot(cluster));
    if (cluster == 0) continue;
    const std::int64_t place = used_[cluster]++;
    at(clusters_[cluster].rows, place) = static_cast<std::int32_t>(row);
    at(clusters_[cluster].targets, place) = static_cast<std::int32_t>(word - clusters[cluster].first);
    at(clusters_[cluster].counted, place) = 1;
  }
}

void TokenPartition::append_counts(std::vector<std::int64_t>& counts) const {
  for (const Cluster& cluster : clusters_) {
    counts.push_back(cluster.inputs.size);
    counts.push_back(cluster.rows.size);
  }
}

}  // namespace engram

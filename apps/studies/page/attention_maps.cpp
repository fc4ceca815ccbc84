#include "apps/studies/page/attention_maps.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "apps/studies/attention/head_reading.hpp"
#include "apps/studies/attention/read_tokens.hpp"
#include "apps/studies/page/packed_series.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

/// Columns of a map at most, queries that it shows, and cells of all maps together, nearly.
constexpr std::int64_t kMostDistances = 128, kMostSlots = 64, kMostRows = 64, kFewestRows = 16, kMostCells = 400'000;
/// Slots that are named of every head, and queries of each.
constexpr std::size_t kNamedSlots = 3, kNamedQueries = 4;

/// What a study finds of a head, before it is known how far any looks.
struct HeadRows {
  AttentionMap head;
  std::vector<std::vector<double>> context, slots;  // of the last queries
  std::vector<SlotUse> uses;
  std::int64_t counted = 0;  // queries in the means
};

class MapMaker {
 public:
  explicit MapMaker(std::int64_t tokens) : tokens_(tokens) {}

  /// Weights of a query by distance, the nearest first, and of slots.
  void add(const HeadPlace& place, std::int64_t position, std::span<const double> context,
           std::span<const double> slots);
  AttentionMaps finish(std::int64_t nearest);

 private:
  HeadRows& at(const HeadPlace& place);
  void add_means(HeadRows& head, std::int64_t position, std::span<const double> context,
                 std::span<const double> slots) const;
  AttentionMap cells_of(const HeadRows& rows, const AttentionMaps& maps) const;

  std::int64_t tokens_;
  std::vector<HeadRows> heads_;
};

HeadRows& MapMaker::at(const HeadPlace& place) {
  for (HeadRows& one : heads_)
    if (HeadPlace{one.head.layer, one.head.head, !one.head.sees_context} == place) return one;
  HeadRows fresh;
  fresh.head.layer = place.layer;
  fresh.head.head = place.head;
  fresh.head.sees_context = !place.of_slots;
  return heads_.emplace_back(std::move(fresh));
}

void MapMaker::add(const HeadPlace& place, std::int64_t position, std::span<const double> context,
                   std::span<const double> slots) {
  HeadRows& found = at(place);
  found.head.sees_slots = !slots.empty();
  // What lies before the text is not shown: there is nothing.
  const auto reach = static_cast<std::size_t>(std::min<std::int64_t>(std::ssize(context), position + 1));
  context = context.first(reach);
  if (position >= tokens_ / 2) add_means(found, position, context, slots);
  if (position < tokens_ - kMostRows) return;
  found.context.emplace_back(context.begin(), context.end());
  found.slots.emplace_back(slots.begin(), slots.end());
}

void MapMaker::add_means(HeadRows& found, std::int64_t position, std::span<const double> context,
                         std::span<const double> slots) const {
  AttentionMap& head = found.head;
  ++found.counted;
  if (head.by_distance.size() < context.size()) head.by_distance.resize(context.size());
  double on_context = 0, distance = 0;
  for (std::size_t i = 0; i < context.size(); ++i) {
    const double weight = context[i];
    head.by_distance[i] += weight;
    on_context += weight;
    distance += weight * static_cast<double>(i);
    if (weight > 0) head.entropy -= weight * std::log2(weight);
  }
  head.distance += on_context > 0 ? distance / on_context : 0;
  found.uses.resize(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    head.slot_share += slots[i];
    if (slots[i] > 0) head.entropy -= slots[i] * std::log2(slots[i]);
    SlotUse& use = found.uses[i];
    use.slot = static_cast<std::int64_t>(i);
    use.share += slots[i];
    const auto place = std::ranges::upper_bound(use.hits, slots[i], std::greater<>(), &SlotHit::weight);
    if (place == use.hits.end() && use.hits.size() >= kNamedQueries) continue;
    use.hits.insert(place, {position, slots[i]});
    if (use.hits.size() > kNamedQueries) use.hits.pop_back();
  }
}

std::int64_t bin_of(std::int64_t count, std::int64_t most) {
  return std::max<std::int64_t>(1, (count + most - 1) / most);
}

AttentionMap MapMaker::cells_of(const HeadRows& rows, const AttentionMaps& maps) const {
  AttentionMap head = rows.head;
  const std::int64_t columns = maps.distance_columns + maps.slot_columns;
  std::vector<double> weights(static_cast<std::size_t>(maps.rows * columns));
  const std::size_t left_out = rows.context.size() - static_cast<std::size_t>(maps.rows);
  for (std::int64_t row = 0; row < maps.rows; ++row) {
    double* const cells = weights.data() + row * columns;
    const std::vector<double>& context = rows.context[left_out + static_cast<std::size_t>(row)];
    const std::vector<double>& slots = rows.slots[left_out + static_cast<std::size_t>(row)];
    for (std::size_t i = 0; i < context.size(); ++i) {
      const std::int64_t column = static_cast<std::int64_t>(i) / maps.distance_bin;
      if (column < maps.distance_columns) cells[column] += context[i];
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
      double& cell = cells[maps.distance_columns + static_cast<std::int64_t>(i) / maps.slot_bin];
      cell = std::max(cell, slots[i]);
    }
  }
  for (const double weight : weights) head.most = std::max(head.most, weight);
  for (const double weight : weights)
    head.cells.push_back(
        head.most > 0 ? static_cast<std::uint8_t>(std::lround(255 * std::sqrt(std::max(0.0, weight) / head.most))) : 0);
  const auto counted = static_cast<double>(std::max<std::int64_t>(1, rows.counted));
  for (double* const sum : {&head.entropy, &head.distance, &head.slot_share}) *sum /= counted;
  head.distance += static_cast<double>(maps.nearest);
  for (double& sum : head.by_distance) sum /= counted;
  std::vector<SlotUse> uses = rows.uses;
  std::ranges::stable_sort(uses, std::greater<>(), &SlotUse::share);
  uses.resize(std::min(uses.size(), kNamedSlots));
  for (SlotUse& use : uses) use.share /= counted;
  head.slots = std::move(uses);
  return head;
}

AttentionMaps MapMaker::finish(std::int64_t nearest) {
  constexpr double kSeen = 1e-3;  // a distance that no head gives more to on any query is not shown
  AttentionMaps maps;
  maps.nearest = nearest;
  std::int64_t farthest = 0, slots = 0;
  std::int64_t rows = kMostRows;
  for (const HeadRows& head : heads_) {
    rows = std::min(rows, std::ssize(head.context));
    for (const std::vector<double>& row : head.context)
      for (std::int64_t i = std::ssize(row); i > farthest; --i)
        if (row[static_cast<std::size_t>(i - 1)] > kSeen) farthest = i;
    if (!head.slots.empty()) slots = std::max(slots, std::ssize(head.slots.front()));
  }
  maps.distance_bin = bin_of(farthest, kMostDistances);
  maps.distance_columns = (farthest + maps.distance_bin - 1) / maps.distance_bin;
  maps.slot_bin = bin_of(slots, kMostSlots);
  maps.slot_columns = (slots + maps.slot_bin - 1) / maps.slot_bin;
  const std::int64_t row_cells =
      std::max<std::int64_t>(1, std::ssize(heads_) * (maps.distance_columns + maps.slot_columns));
  maps.rows = std::min(rows, std::max(kFewestRows, kMostCells / row_cells));
  for (const HeadRows& head : heads_) maps.heads.push_back(cells_of(head, maps));
  return maps;
}

}  // namespace

bool has_maps(const ModelOptions& options, std::string& reason) {
  if (options.family != ModelFamily::recurrent || options.recurrent.attends() ||
      options.recurrent.readout == ReadoutKind::recurrent_memory)
    return true;
  reason = text("its readout, ", name_of(options.recurrent.readout), ", looks back without weights");
  return false;
}

AttentionMaps read_maps(TrainedModel& trained, const std::vector<std::int32_t>& tokens, std::string text,
                        const EvaluationWatch& watch) {
  MapMaker maker(std::ssize(tokens));
  const std::int64_t nearest = read_heads(
      trained, tokens,
      [&maker](const HeadQuery& query) { maker.add(query.place, query.position, query.context, query.slots); }, watch);
  AttentionMaps maps = maker.finish(nearest);
  if (trained.config().model.family == ModelFamily::product_key) maps.window = trained.config().training.block;
  const ReadTokens read(tokens, trained.vocabulary());
  for (std::int64_t i = 0; i < read.size(); ++i) maps.tokens.push_back(read.token(i));
  maps.words = trained.vocabulary().kind() == data::TokenKind::word;
  maps.text = std::move(text);
  return maps;
}

nlohmann::json json_of(const AttentionMaps& maps) {
  nlohmann::json heads = nlohmann::json::array();
  for (const AttentionMap& head : maps.heads) {
    nlohmann::json slots = nlohmann::json::array();
    for (const SlotUse& use : head.slots) {
      nlohmann::json at = nlohmann::json::array();
      for (const SlotHit& hit : use.hits) at.push_back(hit.position);
      slots.push_back({{"slot", use.slot}, {"share", use.share}, {"at", at}});
    }
    heads.push_back({{"layer", head.layer},
                     {"head", head.head},
                     {"context", head.sees_context},
                     {"entropy", head.entropy},
                     {"distance", head.distance},
                     {"slot_share", head.slot_share},
                     {"most", head.most},
                     {"cells", packed_bytes(head.cells)},
                     {"by_distance", packed_floats(head.by_distance)},
                     {"slots", slots}});
  }
  return {{"text", maps.text},
          {"tokens", maps.tokens},
          {"words", maps.words},
          {"rows", maps.rows},
          {"nearest", maps.nearest},
          {"window", maps.window},
          {"distance_columns", maps.distance_columns},
          {"distance_bin", maps.distance_bin},
          {"slot_columns", maps.slot_columns},
          {"slot_bin", maps.slot_bin},
          {"heads", heads}};
}

}  // namespace engram

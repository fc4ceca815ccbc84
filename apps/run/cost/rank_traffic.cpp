#include "apps/run/cost/rank_traffic.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>

#include "nn/optim/shards.hpp"

namespace engram {
namespace {

constexpr auto kF32 = static_cast<std::int64_t>(size_of(DType::f32));
/// Of a backward pass and the forward pass before it.
constexpr double kBackwardShare = 2.0 / 3;

/// 7 of "layers.7".
std::optional<std::int64_t> layer_of(std::string_view part) {
  constexpr std::string_view kLayers = "layers.";
  std::int64_t layer = 0;
  if (!part.starts_with(kLayers)) return std::nullopt;
  const char* const end = part.data() + part.size();
  if (std::from_chars(part.data() + kLayers.size(), end, layer).ptr != end) return std::nullopt;
  return layer;
}

/// When the gradients of each part of a model are final.
class FinalTimes {
 public:
  explicit FinalTimes(const std::vector<GroupLayout>& groups) {
    std::map<std::int64_t, double, std::greater<>> layers;  // the last one first, as backward comes to them
    double output = 0, whole = 0;
    for (const GroupLayout& group : groups)
      for (const Parameter* const parameter : group.parameters) {
        const std::string_view part = part_of_model(parameter->name());
        const std::optional<std::int64_t> layer = layer_of(part);
        if (!layer && part != kOutput) continue;
        (layer ? layers[*layer] : output) += static_cast<double>(parameter->shape().count());
      }
    whole = output;
    for (const auto& [layer, numbers] : layers) whole += numbers;
    if (whole == 0) return;
    double done = output;
    output_ = done / whole;
    for (const auto& [layer, numbers] : layers) layers_[layer] = (done += numbers) / whole;
  }

  double of(const Parameter& parameter) const {
    const std::string_view part = part_of_model(parameter.name());
    if (part == kOutput) return output_;
    const std::optional<std::int64_t> layer = layer_of(part);
    return layer ? layers_.at(*layer) : 1;
  }

 private:
  static constexpr std::string_view kOutput = "output";
  double output_ = 1;
  std::map<std::int64_t, double> layers_;
};

/// What a rank sends for lookups in tables, of whose rows each rank has some of the columns: ids and weights of all,
/// and what it found for the others; backward the columns of their gradients, and its part of the weights'.
void add_lookups(RankTraffic& traffic, const RankSetting& setting, int ranks) {
  const std::int64_t own_pieces = setting.pieces / ranks, others = ranks - 1;
  const std::int64_t tokens = setting.batch / setting.pieces * setting.row_tokens;  // of a piece
  const bool rounded = setting.activations == ActivationPrecision::bf16;
  const auto number = static_cast<std::int64_t>(size_of(rounded ? DType::bf16 : DType::f32));
  const std::int64_t of_token = setting.lookup_reads * (static_cast<std::int64_t>(size_of(DType::i64)) + 2 * kF32) +
                                2 * setting.lookup_numbers / ranks * number;
  constexpr std::int64_t kExchanges = 5;  // each is waited for
  traffic.rows = setting.lookups * own_pieces * tokens * of_token * others;
  traffic.messages += setting.lookups * own_pieces * kExchanges * others;
  traffic.rounds += setting.lookups * own_pieces * kExchanges;
}

}  // namespace

std::int64_t RankTraffic::exchanged() const {
  std::int64_t bytes = 0;
  for (const BucketTraffic& bucket : buckets) bytes += bucket.exchanged;
  return bytes;
}

std::int64_t RankTraffic::gathered() const {
  std::int64_t bytes = 0;
  for (const BucketTraffic& bucket : buckets) bytes += bucket.gathered;
  return bytes;
}

RankTraffic rank_traffic(const RankSetting& setting, const ParameterStore& store, int ranks, int rank) {
  RankTraffic traffic;
  if (ranks == 1) return traffic;
  const std::vector<GroupLayout> groups = store.layout(DType::f32);
  const FinalTimes times(groups);
  const std::int64_t others = ranks - 1;
  for (const Bucket& bucket : make_buckets(groups, DType::f32, ranks)) {
    const std::int64_t own = bucket.end_of(rank) - bucket.begin_of(rank);
    const std::int64_t chunks = bucket.chunk_end_of(rank) - bucket.first_chunk_of(rank);
    BucketTraffic& found = traffic.buckets.emplace_back(BucketTraffic{
        .exchanged = (bucket.end - bucket.begin - own) * kF32, .gathered = own * kF32 * others, .final_after = 0});
    const GroupLayout& group = groups[bucket.group];
    for (std::size_t i = 0; i < group.parameters.size(); ++i)
      if (group.segments[i].offset >= bucket.begin && group.segments[i].offset < bucket.end)
        found.final_after = std::max(found.final_after, times.of(*group.parameters[i]));
    // Where lookups are exchanges too, buckets leave after the backward pass.
    if (setting.lookups > 0) found.final_after = 1;
    traffic.squares += chunks * static_cast<std::int64_t>(sizeof(double)) * others;
    // To each other rank its part of the gradients, and this one's values and sums of squares.
    for (int q = 0; q < ranks; ++q)
      if (q != rank && bucket.end_of(q) > bucket.begin_of(q)) ++traffic.messages;
    if (own > 0) traffic.messages += 2 * others;
  }
  std::ranges::stable_sort(traffic.buckets, {}, &BucketTraffic::final_after);
  if (!traffic.buckets.empty()) traffic.rounds += 2;
  add_lookups(traffic, setting, ranks);
  for (const auto& [name, parameter] : store.parameters()) {
    if (parameter->gradient_kind() != Gradient::none || parameter->frozen()) continue;
    traffic.buffers +=
        parameter->shape().count() * static_cast<std::int64_t>(size_of(parameter->stored_dtype(DType::f32))) * others;
    traffic.messages += others;
    ++traffic.rounds;
  }
  traffic.stop = others;  // whether any rank was told to stop: a byte
  traffic.messages += others;
  ++traffic.rounds;
  traffic.losses = setting.pieces / ranks * (setting.losses + 1) * kF32 * others;  // and that of the spans
  traffic.messages += others;
  ++traffic.rounds;
  return traffic;
}

StepPrediction predict_link(const RankTraffic& traffic, const RankLink& link) {
  StepPrediction prediction;
  for (const BucketTraffic& bucket : traffic.buckets)
    prediction.exchange_seconds += link.latency_seconds + static_cast<double>(bucket.exchanged) / link.bytes_per_second;
  prediction.gather_seconds = static_cast<double>(traffic.rounds) * link.latency_seconds +
                              static_cast<double>(traffic.total() - traffic.exchanged()) / link.bytes_per_second;
  return prediction;
}

StepPrediction predict_step(const RankTraffic& traffic, const RankLink& link, double one_rank_seconds, int ranks,
                            std::int64_t pieces) {
  StepPrediction prediction = predict_link(traffic, link);
  const double backward = kBackwardShare * one_rank_seconds / static_cast<double>(pieces);
  double free = 0;  // when the link is, from the beginning of the last piece's backward pass
  for (const BucketTraffic& bucket : traffic.buckets)
    free = std::max(free, backward * bucket.final_after) + link.latency_seconds +
           static_cast<double>(bucket.exchanged) / link.bytes_per_second;
  prediction.exposed_seconds = std::min(prediction.exchange_seconds, std::max(0.0, free - backward));
  prediction.step_seconds = one_rank_seconds / ranks + prediction.exposed_seconds + prediction.gather_seconds;
  prediction.efficiency = one_rank_seconds / (ranks * prediction.step_seconds);
  return prediction;
}

}  // namespace engram

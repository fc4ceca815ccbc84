#include "apps/studies/attention/head_reading.hpp"

#include "apps/studies/attention/attention_study.hpp"
#include "apps/studies/attention/distance_study.hpp"
#include "apps/studies/attention/window_study.hpp"

namespace engram {
namespace {

using HeadQueryFound = std::function<void(const HeadQuery&)>;

std::int64_t heads_of(const AllAttentionOptions&, TrainedModel& trained, const std::vector<std::int32_t>& tokens,
                      const HeadQueryFound& found, const EvaluationWatch& watch) {
  AttentionStudy study(trained.placed_as<AllAttentionModel>(), {});
  study.on_rows([&found](const HeadAttention& head, const AttentionRow& row) {
    found({.place = {.layer = head.layer, .head = head.head, .of_slots = !head.sees_context},
           .position = row.position,
           .context = row.context,
           .slots = row.slots});
  });
  study.read(tokens, trained.config().training.block, watch);
  return 1;
}

std::int64_t heads_by_distance(DistanceStudy study, TrainedModel& trained, const std::vector<std::int32_t>& tokens,
                               const HeadQueryFound& found, const EvaluationWatch& watch) {
  study.on_rows([&found](const HeadDistances& head, std::int64_t position, std::span<const double> row) {
    found({.place = {.layer = head.layer, .head = head.head}, .position = position, .context = row, .slots = {}});
  });
  study.read(tokens, trained.config().training.block, watch);
  return 0;
}

std::int64_t heads_of(const TransformerXlOptions&, TrainedModel& trained, const std::vector<std::int32_t>& tokens,
                      const HeadQueryFound& found, const EvaluationWatch& watch) {
  return heads_by_distance(DistanceStudy(trained.placed_as<TransformerXlModel>()), trained, tokens, found, watch);
}

std::int64_t heads_of(const ProductKeyTransformerOptions&, TrainedModel& trained,
                      const std::vector<std::int32_t>& tokens, const HeadQueryFound& found,
                      const EvaluationWatch& watch) {
  return heads_by_distance(DistanceStudy(trained.placed_as<ProductKeyTransformer>()), trained, tokens, found, watch);
}

std::int64_t heads_of(const RecurrentOptions&, TrainedModel& trained, const std::vector<std::int32_t>& tokens,
                      const HeadQueryFound& found, const EvaluationWatch& watch) {
  WindowStudy study(trained.placed_as<RecurrentModel>(), {.first = 0, .count = std::ssize(tokens)});
  study.read(tokens, trained.config().training.block, watch);
  for (const WindowRow& row : study.rows()) {
    const std::vector<double> nearest_first(row.weights.rbegin(), row.weights.rend());
    found({.place = {}, .position = row.position, .context = nearest_first, .slots = {}});
  }
  return study.sees_itself() ? 0 : 1;
}

}  // namespace

std::int64_t read_heads(TrainedModel& trained, const std::vector<std::int32_t>& tokens,
                        const std::function<void(const HeadQuery&)>& found, const EvaluationWatch& watch) {
  return with_own_options(trained.config().model,
                          [&](const auto& own) { return heads_of(own, trained, tokens, found, watch); });
}

}  // namespace engram

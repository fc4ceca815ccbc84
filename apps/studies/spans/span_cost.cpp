#include "apps/studies/spans/span_cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "apps/data/blocks/evaluation_plan.hpp"
#include "apps/run/cost/all_attention_cost.hpp"
#include "core/files/json.hpp"
#include "core/rules/span_mask.hpp"

namespace engram {
namespace {

constexpr double kMebibyte = 1048576;

LayerWindows same_for_all(const LayerSpans& heads, std::int64_t window, std::int64_t cached) {
  return {std::vector<double>(heads.size(), static_cast<double>(window)),
          std::vector<double>(heads.size(), static_cast<double>(cached)), static_cast<double>(cached)};
}

struct LayerTrim {
  std::int64_t window = 0, cache = 0;
};
/// For the layer's longest span.
LayerTrim trim_of(const AllAttentionOptions& model, const LayerSpans& heads) {
  if (model.span != SpanKind::adaptive) return {model.max_span, model.max_span};
  const double longest = std::ranges::max_element(heads, {}, &HeadSpan::zeta)->zeta;
  const SpanTrim trim = span_trim(longest, static_cast<int>(model.max_span), static_cast<int>(model.ramp));
  return {trim.window, trim.cache};
}

/// As AttentionSpan chooses them on the CPU.
double computed_window(const AllAttentionOptions& model, const HeadSpan& head) {
  if (model.span != SpanKind::adaptive) return static_cast<double>(model.max_span);
  constexpr std::int64_t kUnit = 16;
  return static_cast<double>(std::min(model.max_span, (head.positions + 1 + kUnit - 1) / kUnit * kUnit));
}

struct Way {
  std::string_view name, key;
  ContextCost SpanCost::*cost;
};
constexpr std::array<Way, 4> kWays{{{"full spans", "full", &SpanCost::full},
                                    {"longest of the layer", "longest_of_layer", &SpanCost::layer},
                                    {"each head, as computed", "computed", &SpanCost::computed},
                                    {"each head, as visible", "visible", &SpanCost::visible}}};

std::string percent(double now, double before) { return fmt::format("{:.1f}%", 100 * ContextCost::saved(now, before)); }

}  // namespace

SpanCost span_cost(const RunConfig& config, const std::vector<LayerSpans>& layers) {
  const AllAttentionOptions& model = config.model.all_attention;
  std::vector<LayerWindows> full, trimmed, computed, visible;
  for (const LayerSpans& heads : layers) {
    const LayerTrim trim = trim_of(model, heads);
    full.push_back(same_for_all(heads, model.max_span, model.max_span));
    trimmed.push_back(same_for_all(heads, trim.window, trim.cache));
    // The hidden states serve all heads, so their cache is as long as the longest needs it.
    const auto cache = static_cast<double>(trim.cache);
    LayerWindows own{{}, {}, cache}, seen{{}, {}, cache};
    for (const HeadSpan& head : heads) {
      own.computed.push_back(computed_window(model, head));
      seen.computed.push_back(static_cast<double>(head.positions));
    }
    own.projected = own.computed;
    seen.projected = seen.computed;
    computed.push_back(std::move(own));
    visible.push_back(std::move(seen));
  }
  const ContextSetting setting{.block = config.training.block,
                               .batch = config.training.batch,
                               .rows = data::FullEvaluation::kUsualRows,
                               .state_bytes = config.training.activations == ActivationPrecision::bf16 ? 2 : 4,
                               .ring_bytes = 4};
  SpanCost cost;
  cost.full = context_cost(model, full, setting);
  cost.layer = context_cost(model, trimmed, setting);
  cost.computed = context_cost(model, computed, setting);
  cost.visible = context_cost(model, visible, setting);
  cost.other_training = training_flops(model, {0, config.training.block, config.training.batch}).total();
  cost.other_evaluation = evaluation_flops(model, 0);
  cost.batch = config.training.batch;
  cost.block = config.training.block;
  return cost;
}

std::string table_of(const SpanCost& cost) {
  std::string lines = fmt::format(
      "attention to the context; training with {} streams in blocks of {} tokens, evaluation with {} streams\n\n",
      cost.batch, cost.block, data::FullEvaluation::kUsualRows);
  lines += fmt::format("{:<24} {:>9} {:>19} {:>19} {:>19} {:>19}\n", "", "mean", "training", "evaluation",
                       "hidden caches", "key, value rings");
  lines += fmt::format("{:<24} {:>9} {:>12} {:>6} {:>12} {:>6} {:>12} {:>6} {:>12} {:>6}\n", "windows", "positions",
                       "MFLOP/token", "saved", "MFLOP/token", "saved", "MiB", "saved", "MiB", "saved");
  for (const Way& way : kWays) {
    const ContextCost& now = cost.*way.cost;
    lines +=
        fmt::format("{:<24} {:>9.1f} {:>12.3f} {:>6} {:>12.3f} {:>6} {:>12.3f} {:>6} {:>12.3f} {:>6}\n", way.name,
                    now.mean_window, now.training_flops / 1e6, percent(now.training_flops, cost.full.training_flops),
                    now.evaluation_flops / 1e6, percent(now.evaluation_flops, cost.full.evaluation_flops),
                    now.cache_bytes / kMebibyte, percent(now.cache_bytes, cost.full.cache_bytes),
                    now.ring_bytes / kMebibyte, percent(now.ring_bytes, cost.full.ring_bytes));
  }
  lines +=
      fmt::format("\n{:<24} {:>9} {:>19} {:>19} {:>12}\n", "whole model", "", "training", "evaluation", "training");
  lines += fmt::format("{:<24} {:>9} {:>12} {:>6} {:>12} {:>6} {:>12}\n", "windows", "", "MFLOP/token", "saved",
                       "MFLOP/token", "saved", "TFLOP/step");
  for (const Way& way : kWays) {
    const double training = cost.other_training + (cost.*way.cost).training_flops;
    const double evaluation = cost.other_evaluation + (cost.*way.cost).evaluation_flops;
    lines += fmt::format("{:<24} {:>9} {:>12.3f} {:>6} {:>12.3f} {:>6} {:>12.4g}\n", way.name, "", training / 1e6,
                         percent(training, cost.other_training + cost.full.training_flops), evaluation / 1e6,
                         percent(evaluation, cost.other_evaluation + cost.full.evaluation_flops),
                         training * cost.tokens_per_step() / 1e12);
  }
  return lines + (cost.shortfalls < 0 ? std::string("\ncaches that were too short for a span: not recorded\n")
                                      : fmt::format("\ncaches that were too short for a span, filled up with zeros: {} "
                                                    "(a layer and a block each)\n",
                                                    cost.shortfalls));
}

nlohmann::json json_of(const SpanCost& cost) {
  nlohmann::json object;
  for (const Way& way : kWays) {
    const ContextCost& now = cost.*way.cost;
    const double training = cost.other_training + now.training_flops;
    object[std::string(way.key)] = {
        {"mean_window_positions", now.mean_window},
        {"context_training_flops_per_token", now.training_flops},
        {"context_training_saved", ContextCost::saved(now.training_flops, cost.full.training_flops)},
        {"context_evaluation_flops_per_token", now.evaluation_flops},
        {"context_evaluation_saved", ContextCost::saved(now.evaluation_flops, cost.full.evaluation_flops)},
        {"hidden_cache_bytes", now.cache_bytes},
        {"key_value_ring_bytes", now.ring_bytes},
        {"training_flops_per_token", training},
        {"evaluation_flops_per_token", cost.other_evaluation + now.evaluation_flops},
        {"training_flops_per_step", training * cost.tokens_per_step()}};
  }
  object["cache_shortfalls"] = cost.shortfalls < 0 ? nlohmann::json() : nlohmann::json(cost.shortfalls);
  return object;
}

}  // namespace engram

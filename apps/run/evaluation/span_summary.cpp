#include "apps/run/evaluation/span_summary.hpp"

#include <algorithm>
#include <cmath>

#include "nn/models/model_options.hpp"

namespace engram {

std::optional<SpanSummary> summarize_spans(const LanguageModel& any_model) {
  const AllAttentionModel* const found = all_attention_of(any_model);
  if (found == nullptr) return std::nullopt;
  const AllAttentionModel& model = *found;
  SpanSummary summary;
  const AllAttentionOptions& options = model.options();
  const auto longest = static_cast<double>(options.max_span);
  for (std::int64_t layer = 0; layer < options.layers; ++layer) {
    double zeta_sum = 0;
    for (const double zeta : model.span(layer).zeta()) zeta_sum += zeta;
    summary.heads.push_back(model.span(layer).reach());
    for (const std::int64_t reach : summary.heads.back()) {
      summary.mean += static_cast<double>(reach);
      summary.longest = std::max(summary.longest, static_cast<double>(reach));
    }
    const double mean_span = std::ceil(longest * zeta_sum / static_cast<double>(options.context_heads()));
    summary.layer_mean += std::clamp(mean_span + static_cast<double>(options.ramp), 0.0, longest);
  }
  summary.mean /= static_cast<double>(options.layers * options.context_heads());
  summary.layer_mean /= static_cast<double>(options.layers);
  return summary;
}

std::int64_t cache_shortfalls(const ModelPast& past) {
  std::int64_t count = 0;
  for (const auto& layer : past) count += state_past(*layer).shortfalls();
  return count;
}

}  // namespace engram

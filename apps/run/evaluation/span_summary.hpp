#pragma once
/// The spans of a model in a few numbers, all in positions.

#include <cstdint>
#include <optional>
#include <vector>

#include "nn/models/language_model.hpp"

namespace engram {

struct SpanSummary {
  double mean = 0;        ///< over layers and heads, of min(S, ceil(z) + R): what each head can see
  double longest = 0;     ///< the largest of these
  double layer_mean = 0;  ///< over layers, of clamp(ceil(S mean zeta) + R, 0, S): the figure of the released models
  std::vector<std::vector<std::int64_t>> heads;  ///< what each head can see, by layer
};
/// The spans of a model as they are now; none where it is of a family without spans.
std::optional<SpanSummary> summarize_spans(const LanguageModel& model);

/// Blocks in which a span had outgrown its cache, so that missing positions counted as zero vectors.
std::int64_t cache_shortfalls(const ModelPast& past);

}  // namespace engram

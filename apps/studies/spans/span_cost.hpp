#pragma once
/// What the spans of a model save, in arithmetic and memory: [all-attention 1.7, 9, 10].

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/run/config/run_config.hpp"
#include "apps/run/cost/context_cost.hpp"
#include "apps/studies/spans/head_spans.hpp"

namespace engram {

/// Four ways to choose the positions that are computed; all give the same result.
struct SpanCost {
  ContextCost full;      ///< S for every head, and as long a cache
  ContextCost layer;     ///< the longest of the layer for all its heads, in steps of 64: section 1.7
  ContextCost computed;  ///< each head its own, as this program's kernels do: one position more, in steps of 16
  ContextCost visible;   ///< each head its own, and only what its mask leaves: section 1.6
  /// FLOPs per token of everything else: products of new tokens, persistent slots, output.
  double other_training = 0, other_evaluation = 0;
  std::int64_t batch = 0, block = 0;  ///< of training: streams, and tokens of each in a step
  std::int64_t shortfalls = -1;       ///< how often a cache was too short while training; below 0: not known

  double tokens_per_step() const { return static_cast<double>(batch * block); }
};
/// What spans cost. `layers` as read_spans() returns them. Evaluation is that of 8 streams in f32. Shortfalls are left
/// unknown.
SpanCost span_cost(const RunConfig& config, const std::vector<LayerSpans>& layers);

/// Two tables with units.
std::string table_of(const SpanCost& cost);
nlohmann::json json_of(const SpanCost& cost);

}  // namespace engram

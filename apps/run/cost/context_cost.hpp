#pragma once
/// What attention to the context costs when every head has its own window: [all-attention 10], the terms with S_b and
/// C. Persistent slots, the products of the new tokens and the output do not depend on windows; model_cost.hpp has
/// them.

#include <cstdint>
#include <vector>

#include "nn/models/all_attention_options.hpp"

namespace engram {

/// Positions, by layer.
struct LayerWindows {
  std::vector<double> computed;   ///< of each head that attends to the context: positions scored per query
  std::vector<double> projected;  ///< of the same heads: cached states that training projects to keys and values
  double cached = 0;              ///< hidden states that training keeps for the next block, for all heads
};

struct ContextSetting {
  std::int64_t block = 1;        ///< M: the past is projected once per block
  std::int64_t batch = 1;        ///< streams of training
  std::int64_t rows = 1;         ///< streams of evaluation
  std::int64_t state_bytes = 4;  ///< of a number in a cached hidden state
  std::int64_t ring_bytes = 4;   ///< of a number in a key or value of evaluation
};

struct ContextCost {
  double mean_window = 0;       ///< positions, over layers and heads
  double training_flops = 0;    ///< per token, forward and backward, projecting the past included
  double evaluation_flops = 0;  ///< per token, through key and value rings, which project nothing
  double cache_bytes = 0;       ///< hidden states between two training steps
  double ring_bytes = 0;        ///< keys and values of evaluation

  /// 1 - this / other, 0 when both are nothing.
  static double saved(double now, double before) { return before > 0 ? 1 - now / before : 0; }
};
/// Every layer has at least one head here.
ContextCost context_cost(const AllAttentionOptions& model, const std::vector<LayerWindows>& layers,
                         const ContextSetting& setting);

}  // namespace engram

#include "apps/run/cost/context_cost.hpp"

#include <numeric>

namespace engram {

ContextCost context_cost(const AllAttentionOptions& model, const std::vector<LayerWindows>& layers,
                         const ContextSetting& setting) {
  const auto width = static_cast<double>(model.width);
  const double depth = width / static_cast<double>(model.heads);
  ContextCost cost;
  double heads = 0;
  for (const LayerWindows& layer : layers) {
    const double scored = std::accumulate(layer.computed.begin(), layer.computed.end(), 0.0);
    const double projected = std::accumulate(layer.projected.begin(), layer.projected.end(), 0.0);
    // Content, position and value, and the positions of values: a multiply-add each per depth and position.
    const double forward = (model.position_values == PositionValues::none ? 6 : 8) * depth * scored;
    // Keys and values of every cached state, from all of its width to the head's depth.
    const double past = 4 * width * depth * projected / static_cast<double>(setting.block);
    // Backward twice the forward products; the cached states are constants, so their projections cost once more only.
    cost.training_flops += 3 * forward + 2 * past;
    cost.evaluation_flops += forward;
    cost.cache_bytes += static_cast<double>(setting.batch * setting.state_bytes) * layer.cached * width;
    cost.ring_bytes += static_cast<double>(setting.rows * setting.ring_bytes) * 2 * depth * scored;
    cost.mean_window += scored;
    heads += static_cast<double>(layer.computed.size());
  }
  cost.mean_window /= heads;
  return cost;
}

}  // namespace engram

#include "apps/cost/model_cost.hpp"

namespace engram {
namespace {

constexpr double kFloat = 4;  // bytes

}  // namespace

TrainingFlops training_flops(const AllAttentionOptions& model, const CostSetting& setting) {
  const auto layers = static_cast<double>(model.layers), width = static_cast<double>(model.width);
  const auto slots = static_cast<double>(model.slots), inner = static_cast<double>(model.inner);
  const double past = 4 * width * width * setting.window / static_cast<double>(setting.block);
  TrainingFlops flops;
  flops.products =
      layers * 3 * (8 * width * width + 4 * width * inner) + 6 * width * static_cast<double>(model.vocabulary);
  flops.attention_forward = layers * (6 * width * setting.window + 4 * width * slots);
  flops.attention_backward = 2 * flops.attention_forward;
  // Cached states are constants: the backward pass needs the weights' gradients only.
  flops.past_forward = flops.past_backward = layers * past;
  return flops;
}

double evaluation_flops(const AllAttentionOptions& model, double window) {
  const auto layers = static_cast<double>(model.layers), width = static_cast<double>(model.width);
  return layers * width *
             (8 * width + 6 * window + 4 * static_cast<double>(model.slots) + 4 * static_cast<double>(model.inner)) +
         2 * width * static_cast<double>(model.vocabulary);
}

double training_exponentials(const AllAttentionOptions& model, double window) {
  return 2 * static_cast<double>(model.layers * model.heads) * (window + static_cast<double>(model.slots));
}

double training_bytes(const AllAttentionOptions& model, const CostSetting& setting, OptimizerKind optimizer,
                      std::int64_t parameters) {
  const auto width = static_cast<double>(model.width), batch = static_cast<double>(setting.batch);
  const auto block = static_cast<double>(setting.block), slots = static_cast<double>(model.slots);
  const double states = batch * (setting.window + block) * width;
  const double layer = 2 * batch * block * width + states + 4 * states + 2 * slots * width +
                       static_cast<double>(model.max_span * (model.width / model.heads)) +
                       batch * static_cast<double>(model.heads) * block;
  // The update reads value, gradient and state, and writes value and state.
  const double update = 2 * values_per_parameter(optimizer) - 1;
  return kFloat * (3 * static_cast<double>(model.layers) * layer + update * static_cast<double>(parameters));
}

double generation_bytes(const AllAttentionOptions& model, double window, std::int64_t parameters) {
  return kFloat * (static_cast<double>(parameters) + 2 * static_cast<double>(model.layers * model.width) * window);
}

int values_per_parameter(OptimizerKind optimizer) { return optimizer == OptimizerKind::adam ? 4 : 3; }

}  // namespace engram

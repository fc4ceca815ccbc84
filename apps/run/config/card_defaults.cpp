#include "apps/run/config/card_defaults.hpp"

namespace engram {

void choose_for_card(RunConfig& config, const std::set<std::string>& given, DeviceKind device, DType dtype) {
  if (device != DeviceKind::cuda || dtype != DType::f32) return;
  if (config.model.family == ModelFamily::recurrent && !given.contains("model.logits_memory"))
    config.model.recurrent.logits_memory = kCardLogitsMemory;
  TrainingOptions& training = config.training;
  const bool wants_f32 = given.contains("training.products") && training.products == ProductPrecision::f32;
  if (!given.contains("training.activations") && !wants_f32 && config.model.family != ModelFamily::recurrent)
    training.activations = ActivationPrecision::bf16;
  const bool rounds = training.activations == ActivationPrecision::bf16 || training.products == ProductPrecision::bf16;
  if (!given.contains("training.validate_as_trained") && rounds) training.validate_as_trained = true;
}

}  // namespace engram

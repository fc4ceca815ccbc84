#include "apps/run/cost/recurrent_cost.hpp"

#include <algorithm>
#include <cmath>

namespace engram {
namespace {

/// Sizes as numbers.
struct RecurrentSizes {
  double V, w, k, d, L, N;
  explicit RecurrentSizes(const RecurrentOptions& model)
      : V(static_cast<double>(model.vocabulary)),
        w(static_cast<double>(model.vector_width())),
        k(static_cast<double>(model.width)),
        d(static_cast<double>(model.hidden_width())),
        L(static_cast<double>(model.window)),
        N(static_cast<double>(model.order)) {}
};

/// Numbers in the encoder's matrices.
double encoder_weights(const RecurrentOptions& model) {
  const RecurrentSizes size(model);
  const double extra = model.output_map ? size.k * size.k : 0;
  switch (model.encoder) {
    case RecurrentCell::lstm:
      return 4 * size.k * (size.w + size.k);
    case RecurrentCell::rnn:
      return size.k * (size.w + size.k) + extra;
    case RecurrentCell::hornn_fofe:
      return size.k * (size.w + size.N * size.k) + extra;
    default:
      return size.k * ((1 + size.N) * size.w + 2 * size.N * size.k) + extra;
  }
}

/// Of the encoder's activations, per token.
double encoder_exponentials(const RecurrentOptions& model) {
  const RecurrentSizes size(model);
  if (model.encoder == RecurrentCell::lstm) return 5 * size.k;
  return model.encoder == RecurrentCell::hornn_gated ? (1 + size.N) * size.k : size.k;
}

/// Of what a window's weights need, per token.
double window_exponentials(const RecurrentOptions& model) {
  const RecurrentSizes size(model);
  if (model.attends()) return size.L * size.d + size.L;
  return model.readout == ReadoutKind::recurrent_memory ? size.L : 0;
}

double readout_weights(const RecurrentOptions& model) {
  const RecurrentSizes size(model);
  if (model.attends()) return 4 * size.d * size.d;
  if (model.readout == ReadoutKind::n_gram) return size.d * size.k;
  return model.readout == ReadoutKind::recurrent_memory ? 6 * size.k * size.k : 0;
}

}  // namespace

RecurrentFlops forward_flops(const RecurrentOptions& model) {
  const RecurrentSizes size(model);
  RecurrentFlops flops;
  flops.encoder = 2 * encoder_weights(model);
  flops.readout = 2 * readout_weights(model);
  if (model.attends()) flops.window = 5 * size.L * size.d;
  if (model.readout == ReadoutKind::recurrent_memory) flops.window = 4 * size.L * size.k;
  flops.softmax = 2 * size.V * size.d;
  return flops;
}

TrainingFlops training_flops(const RecurrentOptions& model) {
  const RecurrentFlops forward = forward_flops(model);
  TrainingFlops flops;
  flops.products = 3 * forward.products();
  flops.attention_forward = forward.window;
  flops.attention_backward = 2 * forward.window;
  return flops;
}

double forward_exponentials(const RecurrentOptions& model) {
  const RecurrentSizes size(model);
  double sum = encoder_exponentials(model) + window_exponentials(model);
  if (model.output_map) sum += size.k;
  if (model.attends()) sum += size.d;
  if (model.readout == ReadoutKind::n_gram) sum += size.d;
  if (model.readout == ReadoutKind::recurrent_memory) sum += 3 * size.k;
  return sum;
}

StepCost step_cost(const RecurrentOptions& model, const StepSetting& setting) {
  const RecurrentSizes size(model);
  const auto tokens = static_cast<double>(setting.batch * setting.block);
  StepCost cost;
  cost.window = static_cast<double>(model.readout_reach());
  cost.training = training_flops(model);
  cost.attention_exponentials = forward_exponentials(model);
  cost.output_exponentials = size.V;
  cost.recurrence_flops = 2 * model.recurrence().weight_blocks() * size.k * size.k;
  cost.output_flops = 3 * forward_flops(model).softmax;
  cost.recurrence_exponentials = encoder_exponentials(model);
  cost.window_exponentials = window_exponentials(model);
  cost.exponentials = 2 * cost.attention_exponentials + cost.output_exponentials;
  const double row_bytes = kFloatBytes * size.V;
  const double rows = std::max(1.0, std::floor(static_cast<double>(model.logits_memory << 20) / row_bytes));
  const double blocks = std::ceil(tokens / rows);
  // Per token vectors, gates, states and what the readout reads and makes, forward once and backward twice.
  cost.bytes = kFloatBytes * 3 * tokens * (size.w + 6 * size.k + 4 * size.d) +
               blocks * 4 * kFloatBytes * size.V * size.d + update_bytes(setting.optimizer, setting.parameters);
  cost.forward_flops = cost.frozen_flops = forward_flops(model).total();
  cost.token_bytes = kFloatBytes * (encoder_weights(model) + readout_weights(model) + size.V * size.d);
  return cost;
}

}  // namespace engram

#include "apps/run/cost/recurrent_cost.hpp"

#include <algorithm>
#include <cmath>

#include "apps/run/cost/cluster_shares.hpp"

namespace engram {
namespace {

/// Sizes as numbers.
struct RecurrentSizes {
  double V, k, d, L;
  explicit RecurrentSizes(const RecurrentOptions& model)
      : V(static_cast<double>(model.vocabulary)),
        k(static_cast<double>(model.width)),
        d(static_cast<double>(model.hidden_width())),
        L(static_cast<double>(model.window)) {}
};

/// Numbers in the matrices of a layer.
double layer_weights(const RecurrentOptions& model, std::int64_t layer) {
  const auto w = static_cast<double>(model.layer_input(layer)), k = static_cast<double>(model.layer_width(layer));
  const auto N = static_cast<double>(model.order);
  const double extra = model.output_map && layer + 1 == model.layers ? k * k : 0;
  switch (model.encoder) {
    case RecurrentCell::lstm:
      return 4 * k * (w + k);
    case RecurrentCell::rnn:
      return k * (w + k) + extra;
    case RecurrentCell::hornn_fofe:
      return k * (w + N * k) + extra;
    case RecurrentCell::qrnn:
      return 3 * k * static_cast<double>(model.layer_taps(layer)) * w;
    default:
      return k * ((1 + N) * w + 2 * N * k) + extra;
  }
}

/// The sum over the layers of of(layer).
template <class Of>
double over_layers(const RecurrentOptions& model, const Of& of) {
  double sum = 0;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) sum += of(layer);
  return sum;
}

double encoder_weights(const RecurrentOptions& model) {
  return over_layers(model, [&](std::int64_t layer) { return layer_weights(model, layer); });
}
/// Of them, those that steps multiply one after the other.
double step_weights(const RecurrentOptions& model) {
  if (model.encoder == RecurrentCell::qrnn) return 0;
  return over_layers(model, [&](std::int64_t layer) {
    const auto k = static_cast<double>(model.layer_width(layer));
    return model.recurrence().weight_blocks() * k * k;
  });
}

/// Of the encoder's activations, per token.
double encoder_exponentials(const RecurrentOptions& model) {
  const double each = model.encoder == RecurrentCell::lstm          ? 5
                      : model.encoder == RecurrentCell::qrnn        ? 3
                      : model.encoder == RecurrentCell::hornn_gated ? 1 + static_cast<double>(model.order)
                                                                    : 1;
  return over_layers(model, [&](std::int64_t layer) { return each * static_cast<double>(model.layer_width(layer)); });
}

/// Numbers of the layers' vectors, gates and states that a token goes through.
double layer_numbers(const RecurrentOptions& model) {
  return over_layers(model, [&](std::int64_t layer) {
    return static_cast<double>(model.layer_input(layer) + 6 * model.layer_width(layer));
  });
}

/// One cluster of the vocabulary, or all of it.
struct VocabularyPart {
  double rows;                 // words and, in the first, slots of the others
  double width, projection;    // of the output's vectors, and numbers of their projection, 0 where there is none
  double input_projection;     // the same of the input
  double share, output_share;  // of the tokens
};

std::vector<VocabularyPart> vocabulary_parts(const RecurrentOptions& model, const std::vector<double>& given) {
  const std::vector<double> shares = model.cutoffs.empty() ? std::vector<double>{1}
                                     : given.empty()       ? assumed_shares(model.cutoffs, model.vocabulary)
                                                           : given;
  const std::int64_t d = model.hidden_width(), w = model.vector_width();
  const auto projection = [](std::int64_t whole, std::int64_t own) {
    return own == whole ? 0 : static_cast<double>(whole) * static_cast<double>(own);
  };
  std::vector<VocabularyPart> parts;
  std::int64_t first = 0, output = d, input = w;
  for (std::size_t i = 0; i <= model.cutoffs.size(); ++i) {
    const std::int64_t end = i < model.cutoffs.size() ? model.cutoffs[i] : model.vocabulary;
    parts.push_back({.rows = static_cast<double>(end - first) + (i == 0 ? static_cast<double>(shares.size() - 1) : 0),
                     .width = static_cast<double>(output),
                     .projection = projection(d, output),
                     .input_projection = projection(w, input),
                     .share = shares.at(i),
                     .output_share = i == 0 ? 1 : shares.at(i)});
    first = end;
    output /= model.divisor;
    input /= model.divisor;
  }
  return parts;
}

/// The sum over the clusters of of(part).
template <class Of>
double over_vocabulary(const RecurrentOptions& model, const std::vector<double>& shares, const Of& of) {
  double sum = 0;
  for (const VocabularyPart& part : vocabulary_parts(model, shares)) sum += of(part);
  return sum;
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

RecurrentFlops forward_flops(const RecurrentOptions& model, const std::vector<double>& cluster_shares) {
  const RecurrentSizes size(model);
  RecurrentFlops flops;
  flops.encoder = 2 * encoder_weights(model);
  flops.readout = 2 * readout_weights(model);
  if (model.attends()) flops.window = 5 * size.L * size.d;
  if (model.readout == ReadoutKind::recurrent_memory) flops.window = 4 * size.L * size.k;
  flops.softmax = over_vocabulary(model, cluster_shares, [](const VocabularyPart& part) {
    return 2 * part.output_share * (part.rows * part.width + part.projection);
  });
  flops.input = over_vocabulary(model, cluster_shares,
                                [](const VocabularyPart& part) { return 2 * part.share * part.input_projection; });
  return flops;
}

TrainingFlops training_flops(const RecurrentOptions& model, const std::vector<double>& cluster_shares) {
  const RecurrentFlops forward = forward_flops(model, cluster_shares);
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
  cost.output_exponentials =
      over_vocabulary(model, {}, [](const VocabularyPart& part) { return part.output_share * part.rows; });
  cost.recurrence_flops = 2 * step_weights(model);
  cost.recurrence_exponentials = encoder_exponentials(model);
  cost.window_exponentials = window_exponentials(model);
  cost.exponentials = 2 * cost.attention_exponentials + cost.output_exponentials;
  // Per token vectors, gates, states and what the readout reads and makes, forward once and backward twice.
  cost.bytes = kFloatBytes * 3 * tokens * (layer_numbers(model) + 4 * size.d) +
               update_bytes(setting.optimizer, setting.parameters);
  if (model.cutoffs.empty()) {
    cost.output_flops = 3 * forward_flops(model).softmax;
    const double row_bytes = kFloatBytes * size.V;
    const double rows = std::max(1.0, std::floor(static_cast<double>(model.logits_memory << 20) / row_bytes));
    cost.bytes += std::ceil(tokens / rows) * 4 * kFloatBytes * size.V * size.d;
  }
  cost.forward_flops = cost.frozen_flops = forward_flops(model).total();
  const double output =
      over_vocabulary(model, {}, [](const VocabularyPart& part) { return part.rows * part.width + part.projection; });
  cost.token_bytes = kFloatBytes * (encoder_weights(model) + readout_weights(model) + output);
  return cost;
}

}  // namespace engram

#pragma once
/// A small Transformer of the product-key family with memory, its parameters readable and writable as plain arrays, and
/// the same model in the words of the executable definition.

#include <string>
#include <vector>

#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "nn/models/product_key_transformer.hpp"
#include "nn/visitor.hpp"
#include "tests/nn/placed_parameters.hpp"
#include "tests/reference/central_differences.hpp"
#include "tests/reference/product_key_transformer.hpp"

namespace engram::harness {

/// Two layers of two heads, seven words, windows of up to nine tokens.
inline ProductKeyTransformerOptions small_host() {
  return {.vocabulary = 7, .layers = 2, .width = 6, .heads = 2, .inner = 10, .position_rows = 9};
}

struct HostVariant {
  std::string name;
  ProductKeyTransformerOptions options;
};

/// Both places of the norms with both activations.
inline std::vector<HostVariant> host_variants() {
  std::vector<HostVariant> all;
  for (const bool pre_norm : {false, true})
    for (const Activation activation : {Activation::gelu, Activation::relu}) {
      ProductKeyTransformerOptions options = small_host();
      options.pre_norm = pre_norm;
      options.activation = activation;
      all.push_back({text(pre_norm ? "pre-norm, " : "post-norm, ", name_of(activation)), options});
    }
  return all;
}

struct PlacedHost : PlacedParameters {
  ProductKeyTransformer model;
  ModelPast past;

  explicit PlacedHost(const ProductKeyTransformerOptions& options, DType type = DType::f64,
                      Backend& device = *available_backends().front())
      : PlacedParameters(device), model(options) {
    collect(model, store);
    store.place(backend, type, 3);
    past = model.training_past(backend, heap, 1, type);
  }

  /// Numbers of the size of 0.4 for every parameter, gains near 1: those that models start with would hide mistakes.
  void spread(std::uint64_t seed) {
    reference::RandomArrays random(seed);
    for (const auto& [name, parameter] : store.parameters()) {
      std::vector<double> values = random.array({parameter->shape().count()}, 0.4).data;
      if (name.ends_with(".gain"))
        for (double& value : values) value += 1;
      set(name, values);
    }
  }

  TokenBatch batch(const Ids& tokens, const Ids& targets, std::int64_t streams) {
    const auto count = static_cast<std::int64_t>(tokens.size());
    TokenBatch block;
    block.inputs = ids(tokens, {streams, count / streams});
    if (!targets.empty()) block.targets = ids(targets, {static_cast<std::int64_t>(targets.size())});
    return block;
  }
  /// ln p of every word after every token, [B, M, V], in inference mode.
  reference::Array64 run(const Ids& tokens, std::int64_t streams = 1) {
    step.begin({});
    Tape tape(step, Tape::Mode::inference);
    const Variable hidden = model.hidden(tape, batch(tokens, {}, streams), past);
    return {{streams, static_cast<std::int64_t>(tokens.size()) / streams, model.options().vocabulary},
            model.tokens().log_probabilities(hidden)};
  }
  /// The mean loss of a block; adds to the gradients.
  double train(const Ids& tokens, const Ids& targets, std::int64_t streams = 1) {
    step.begin({});
    Tape tape(step);
    const TokenBatch block = batch(tokens, targets, streams);
    auto parts = model.tokens().losses(model.hidden(tape, block, past), block, 1.0 / double(targets.size()));
    const double loss = to_host(backend, parts.front().loss.value()).data[0];
    const std::vector<Variable> losses{parts.front().loss};
    parts.clear();
    if (differentiates) tape.backward(losses);
    return loss;
  }

  reference::HostTransformer definition() {
    const auto map = [this](const std::string& name) {
      return reference::HostMap{value(name + ".weight"), value(name + ".bias")};
    };
    const auto norm = [this](const std::string& name) {
      return reference::HostNorm{value(name + ".gain"), value(name + ".bias")};
    };
    const ProductKeyTransformerOptions& options = model.options();
    reference::HostTransformer defined{.heads = options.heads,
                                       .gelu = options.activation == Activation::gelu,
                                       .pre_norm = options.pre_norm,
                                       .epsilon = options.norm_epsilon,
                                       .table = value("embedding.table"),
                                       .positions = value("positions"),
                                       .embedding_norm = norm("embedding_norm"),
                                       .layers = {},
                                       .output_norm = {},
                                       .output_bias = value("output.bias")};
    if (options.pre_norm) defined.output_norm = norm("output_norm");
    for (std::int64_t n = 0; n < options.layers; ++n) {
      const std::string layer = text("layers.", n, ".");
      defined.layers.push_back({.query = map(layer + "attention.query"),
                                .key = map(layer + "attention.key"),
                                .value = map(layer + "attention.value"),
                                .output = map(layer + "attention.output"),
                                .attention_norm = norm(layer + "attention_norm"),
                                .inner = map(layer + "feed_forward.inner"),
                                .outer = map(layer + "feed_forward.outer"),
                                .forward_norm = norm(layer + "feed_forward_norm")});
    }
    return defined;
  }
};

}  // namespace engram::harness

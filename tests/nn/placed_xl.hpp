#pragma once
/// A small Transformer-XL with memory, its parameters readable and writable as plain arrays, and the same model in the
/// words of the executable definition.

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "autograd/functions/slice.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "nn/models/transformer_xl.hpp"
#include "nn/visitor.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/reference/central_differences.hpp"
#include "tests/reference/transformer_xl.hpp"

namespace engram::harness {

using Ids = std::vector<std::int64_t>;

inline Ids random_ids(std::int64_t count, std::int64_t vocabulary, std::uint64_t seed) {
  reference::RandomArrays random(seed);
  Ids ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(random.below(vocabulary));
  return ids;
}

/// The model of [transformer-xl 12]: two layers, clusters, projections tied but for the first.
inline TransformerXlOptions gold_options() {
  TransformerXlOptions options;
  options.vocabulary = 11;
  options.layers = 2;
  options.width = 8;
  options.heads = 2;
  options.depth = 3;
  options.inner = 10;
  options.cutoffs = {5, 8};
  options.divisor = 2;
  options.untied_projections = {0};
  options.tie_position_biases = false;
  options.memory = 5;
  return options;
}

struct PlacedXl {
  Backend& backend;
  HeapAllocator heap{backend};
  Step step{backend, heap, 7};
  ParameterStore store;
  TransformerXlModel model;
  DType dtype;  // of activations
  TokenPartition partition;
  /// False: losses of training without their gradients, for differences, which ask for thousands of them.
  bool differentiates = true;

  explicit PlacedXl(const TransformerXlOptions& options, DType type = DType::f64,
                    Backend& device = *available_backends().front(),
                    ActivationPrecision activations = ActivationPrecision::f32)
      : backend(device), model(options), dtype(activations == ActivationPrecision::bf16 ? DType::bf16 : type) {
    collect(model, store);
    store.place(backend, type, 3);
    step.set_activations(activations);
    if (activations == ActivationPrecision::bf16) store.keep_rounded(step);
    model.refresh(backend);
  }

  const Parameter& parameter(const std::string& name) const {
    const Parameter* found = store.find(name);
    if (found == nullptr) throw Error("test: no parameter " + name);
    return *found;
  }
  bool has(const std::string& name) const { return store.find(name) != nullptr; }
  reference::Array64 value(const std::string& name) { return to_host(backend, parameter(name).value()); }
  /// A default-made array where there is no such parameter.
  reference::Array64 given(const std::string& name) { return has(name) ? value(name) : reference::Array64{}; }
  reference::Array64 gradient(const std::string& name) { return to_host(backend, parameter(name).gradient()); }
  void set(const std::string& name, const std::vector<double>& values) {
    const Tensor& to = parameter(name).value();
    reference::require(to.count() == static_cast<std::int64_t>(values.size()), "set: one value for every element");
    write(to, values);
    if (dtype == DType::bf16) store.refresh_rounded(step);
  }
  void write(const Tensor& to, const std::vector<double>& values) {
    dispatch_storage(to.dtype(), "test", [&]<class T>() {
      std::vector<T> host;
      for (const double number : values) host.push_back(static_cast<T>(static_cast<Compute<T>>(number)));
      backend.copy(to.raw(), host.data(), to.bytes(), CopyKind::host_to_device);
    });
  }
  /// Numbers of the size of 0.3 for every parameter: those that models start with would hide mistakes. Gains are
  /// near 1.
  void spread(std::uint64_t seed) {
    reference::RandomArrays random(seed);
    for (const auto& [name, parameter] : store.parameters()) {
      std::vector<double> values = random.array({parameter->shape().count()}, 0.4).data;
      if (name.ends_with(".gain"))
        for (double& value : values) value += 1;
      set(name, values);
    }
  }

  ModelPast memory(std::int64_t streams = 1) { return model.training_past(backend, heap, streams, dtype); }
  ModelPast ring(std::int64_t streams = 1, std::int64_t longest = 8) {
    return model.frozen_past(backend, heap, streams, dtype, longest);
  }

  Tensor ids(const Ids& tokens, Shape shape) {
    Tensor tensor(shape, DType::i32, backend.device(), heap);
    const std::vector<std::int32_t> host(tokens.begin(), tokens.end());
    backend.copy(tensor.raw(), host.data(), tensor.bytes(), CopyKind::host_to_device);
    return tensor;
  }
  /// A block as the model reads it, valid until the next one. `targets`: of the columns that have losses.
  TokenBatch batch(const Ids& tokens, const Ids& targets, std::int64_t streams) {
    const auto count = static_cast<std::int64_t>(tokens.size());
    TokenBatch block;
    block.inputs = ids(tokens, {streams, count / streams});
    if (!targets.empty()) block.targets = ids(targets, {static_cast<std::int64_t>(targets.size())});
    if (model.tokens().clusters() == nullptr) return block;
    const std::vector<std::int32_t> inputs(tokens.begin(), tokens.end()), wanted(targets.begin(), targets.end());
    partition.assign(*model.tokens().clusters(), inputs, wanted, false);
    block.partition = &partition;
    const Ids values(partition.values().begin(), partition.values().end());
    block.lists = ids(values, {static_cast<std::int64_t>(values.size())});
    return block;
  }

  /// ln p of every word after every token of a block, [B, S, V], in inference mode.
  reference::Array64 run(const Ids& tokens, ModelPast& past, std::int64_t streams = 1, std::int64_t fed_again = 0) {
    step.begin({});
    Tape tape(step, Tape::Mode::inference);
    TokenBatch block = batch(tokens, {}, streams);
    block.fed_again = fed_again;
    const Variable hidden = model.hidden(tape, block, past);
    return {{streams, static_cast<std::int64_t>(tokens.size()) / streams, model.options().vocabulary},
            model.tokens().log_probabilities(hidden)};
  }
  /// The last hidden states [B, S, D] of a block.
  reference::Array64 hidden(const Ids& tokens, ModelPast& past, std::int64_t streams = 1) {
    step.begin({});
    Tape tape(step, Tape::Mode::inference);
    return to_host(backend, model.hidden(tape, batch(tokens, {}, streams), past).value());
  }
  /// -ln p of the targets of one stream.
  std::vector<double> losses(const Ids& tokens, const Ids& targets, ModelPast& past) {
    const reference::Array64 all = run(tokens, past);
    std::vector<double> result;
    for (std::size_t i = 0; i < targets.size(); ++i)
      result.push_back(-all.at(0, static_cast<std::int64_t>(i), targets[i]));
    return result;
  }
  /// The sum of the losses of a block's targets, each with this weight; adds to the gradients.
  double train(const Ids& tokens, const Ids& targets, ModelPast& past, double weight, std::int64_t streams = 1) {
    step.begin({});
    Tape tape(step);
    const TokenBatch block = batch(tokens, targets, streams);
    std::vector<Variable> parts;
    double total = 0;
    for (LossPart& part : model.tokens().losses(model.hidden(tape, block, past), block, weight)) {
      total += to_host(backend, part.loss.value()).data[0];
      parts.push_back(std::move(part.loss));
    }
    if (differentiates) tape.backward(parts);
    return total;
  }

  /// The same model in the words of the executable definition.
  reference::TransformerXl definition() {
    const TransformerXlOptions& options = model.options();
    const SegmentContext& context = model.context();
    const auto kind = [&] {
      switch (options.positions) {
        case PositionKind::shaw:
          return options.shaw_terms == ShawTerms::ab ? reference::XlPositions::shaw_ab
                                                     : reference::XlPositions::shaw_abcd;
        case PositionKind::absolute_sinusoidal:
          return reference::XlPositions::sinusoidal;
        case PositionKind::absolute_learned:
          return reference::XlPositions::learned;
        default:
          return reference::XlPositions::relative;
      }
    };
    reference::TransformerXl defined;
    defined.rules = {.positions = kind(),
                     .visibility = context.visibility == Visibility::all ? reference::XlVisibility::all
                                   : context.visibility == Visibility::last_memory
                                       ? reference::XlVisibility::last_memory
                                       : reference::XlVisibility::last_memory_plus_1,
                     .heads = options.heads,
                     .depth = options.head_depth(),
                     .memory = context.memory,
                     .zeros = context.start == MemoryStart::zeros,
                     .clamp = std::max<std::int64_t>(0, context.clamp),
                     .pre_norm = options.pre_norm,
                     .reversed = options.cluster_order == ClusterOrder::reversed,
                     .epsilon = options.norm_epsilon};
    defined.cutoffs = options.cutoffs;
    for (std::size_t bin = 0; bin <= options.cutoffs.size(); ++bin) {
      const std::string part = options.cutoffs.empty() ? "." : text(".clusters.", bin, ".");
      const auto tied = [&](const std::string& name) {
        return has("output" + part + name) ? value("output" + part + name) : given("embedding" + part + name);
      };
      defined.tables.push_back(value("embedding" + part + "table"));
      defined.projections.push_back(given("embedding" + part + "projection"));
      defined.out_tables.push_back(tied("table"));
      defined.out_projections.push_back(tied("projection"));
      defined.out_biases.push_back(value("output" + part + "bias"));
    }
    defined.cluster_weight = given("output.cluster_head.weight");
    defined.cluster_bias = given("output.cluster_head.bias");
    for (std::int64_t n = 0; n < options.layers; ++n) {
      const std::string layer = text("layers.", n, "."), attention = layer + "attention.";
      const auto bias = [&](const std::string& name) {
        return has(attention + name + "_bias") ? value(attention + name + "_bias") : given("position_biases." + name);
      };
      defined.layers.push_back({.query = value(attention + "query"),
                                .key = value(attention + "key"),
                                .value = value(attention + "value"),
                                .output = value(attention + "output"),
                                .position = given(attention + "position"),
                                .content_bias = bias("content"),
                                .position_bias = bias("position"),
                                .distance_keys = given(attention + "distance_keys"),
                                .distance_biases = given(attention + "distance_biases"),
                                .positions = given(layer + "positions"),
                                .attention_gain = value(layer + "attention_norm.gain"),
                                .attention_bias = value(layer + "attention_norm.bias"),
                                .inner = value(layer + "feed_forward.inner.weight"),
                                .inner_bias = value(layer + "feed_forward.inner.bias"),
                                .outer = value(layer + "feed_forward.outer.weight"),
                                .outer_bias = value(layer + "feed_forward.outer.bias"),
                                .forward_gain = value(layer + "feed_forward_norm.gain"),
                                .forward_bias = value(layer + "feed_forward_norm.bias")});
    }
    return defined;
  }
};

/// Largest difference of two arrays of equally many numbers.
inline double farthest_apart(const std::vector<double>& a, const std::vector<double>& b) {
  reference::require(a.size() == b.size() && !a.empty(), "farthest_apart: equally many numbers");
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(a[i] - b[i]);
    // A NaN must not look like agreement.
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

}  // namespace engram::harness

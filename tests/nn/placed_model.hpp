#pragma once
/// A small model with memory, its parameters readable and writable as plain arrays, for tests of whole models. Every
/// tensor is an allocation of its own, so that a sanitizer sees what leaves it.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autograd/tape.hpp"
#include "core/backend.hpp"
#include "core/error.hpp"
#include "nn/models/all_attention.hpp"
#include "nn/past/hidden_cache.hpp"
#include "nn/visitor.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/reference/array64.hpp"
#include "tests/reference/central_differences.hpp"
#include "tests/reference/character_model.hpp"

namespace engram::harness {

using Tokens = std::vector<std::int64_t>;

inline Tokens random_tokens(std::int64_t count, std::int64_t vocabulary, std::uint64_t seed) {
  reference::RandomArrays random(seed);
  Tokens tokens;
  for (std::int64_t i = 0; i < count; ++i) tokens.push_back(random.below(vocabulary));
  return tokens;
}

/// Device, memory and step of a test; one thread, which is enough for small numbers.
struct Bench {
  std::unique_ptr<Backend> backend = open_backend({});
  HeapAllocator heap{*backend};
  Step step{*backend, heap, 7};
  Bench() { backend->set_threads(1); }

  Tensor ids(const Tokens& tokens, Shape shape) {
    Tensor tensor = step.empty(shape, DType::i32);
    std::vector<std::int32_t> host(tokens.begin(), tokens.end());
    backend->copy(tensor.raw(), host.data(), tensor.bytes(), CopyKind::host_to_device);
    return tensor;
  }
  Tensor tensor(const reference::Array64& values, DType dtype = DType::f64) {
    Tensor made(Shape(std::span<const std::int64_t>(values.shape)), dtype, backend->device(), heap);
    write(made, values);
    return made;
  }
  void write(const Tensor& to, const reference::Array64& values) {
    dispatch_float(to.dtype(), "test", [&]<class T>() {
      const std::vector<T> host(values.data.begin(), values.data.end());
      backend->copy(to.raw(), host.data(), to.bytes(), CopyKind::host_to_device);
    });
  }
  reference::Array64 read(const Tensor& tensor) { return to_host(*backend, tensor); }
};

struct PlacedModel : Bench {
  ParameterStore store;
  AllAttentionModel model;
  DType dtype;
  TokenPartition partition;
  /// False: losses of training without their gradients, for differences, which ask for thousands of them.
  bool differentiates = true;

  explicit PlacedModel(const AllAttentionOptions& options, DType type = DType::f64, std::uint64_t seed = 3)
      : model(options), dtype(type) {
    collect(model, store);
    store.place(*backend, dtype, seed);
    model.refresh(*backend);
  }

  const Parameter& parameter(const std::string& name) const {
    const Parameter* found = store.find(name);
    if (found == nullptr) throw Error("test: no parameter " + name);
    return *found;
  }
  reference::Array64 value(const std::string& name) { return read(parameter(name).value()); }
  reference::Array64 gradient(const std::string& name) { return read(parameter(name).gradient()); }
  void set(const std::string& name, const reference::Array64& values) {
    write(parameter(name).value(), values);
    model.refresh(*backend);
  }
  /// Of adaptive spans, some share of the longest; of dynamic ones, weights and biases that spread them widely.
  void set_spans(std::uint64_t seed) {
    reference::RandomArrays random(seed);
    if (model.options().span == SpanKind::dynamic) {
      for (const auto& [name, parameter] : store.parameters())
        if (name.find(".attention.span_") != std::string::npos) set(name, random.array(shape_of(*parameter)));
      return;
    }
    for (std::int64_t layer = 0; layer < model.options().layers; ++layer) {
      reference::Array64 zeta = reference::zeros({model.options().heads});
      for (double& share : zeta.data) share = 0.5 + 0.5 * random.number();
      set(text("layers.", layer, ".attention.span"), zeta);
    }
  }

  static std::vector<std::int64_t> shape_of(const Parameter& parameter) {
    std::vector<std::int64_t> shape;
    for (int axis = 0; axis < parameter.shape().rank(); ++axis) shape.push_back(parameter.shape()[axis]);
    return shape;
  }
  ModelPast hidden(std::int64_t streams) { return model.training_past(*backend, heap, streams, dtype); }
  ModelPast ring(std::int64_t streams) { return model.frozen_past(*backend, heap, streams, dtype); }

  /// Logits [B, M, V] of one block of B streams, in inference mode.
  reference::Array64 logits(const Tokens& tokens, std::int64_t streams, ModelPast& past) {
    step.begin({});
    Tape tape(step, Tape::Mode::inference);
    const auto length = static_cast<std::int64_t>(tokens.size()) / streams;
    return read(model.forward(tape, ids(tokens, {streams, length}), past).value());
  }

  /// What the layers do with one token at the start of a stream.
  ModelTrace trace(Tape& tape) {
    ModelTrace made(step.objects());
    ModelPast past = hidden(1);
    model.hidden(tape, {.inputs = ids({0}, {1, 1}), .targets = {}, .partition = nullptr, .lists = {}}, past, &made);
    return made;
  }

  /// Sum of all losses of a block plus the span penalty; adds to the gradients.
  double train(const Tokens& tokens, const Tokens& targets, std::int64_t streams, ModelPast& past, double lambda) {
    step.begin({});
    Tape tape(step);
    const TokenBatch block = batch(tokens, targets, streams);
    ModelTrace trace(step.objects());
    std::vector<Variable> losses;
    double total = 0;
    for (LossPart& part : model.tokens().losses(model.hidden(tape, block, past, &trace), block, 1)) {
      total += read(part.loss.value()).data[0];
      losses.push_back(std::move(part.loss));
    }
    if (const Variable penalty = model.penalty(trace, lambda)) {
      total += read(penalty.value()).data[0];
      losses.push_back(penalty);
    }
    if (differentiates) tape.backward(losses);
    return total;
  }

  reference::Array64 position_values() {
    switch (model.options().position_values) {
      case PositionValues::shared:
        return value("position_keys");
      case PositionValues::own:
        return value("position_values");
      default:
        return {};
    }
  }
  /// A block as the model reads it, valid until the next one. With `padded`, clusters have the padding that they have
  /// on devices which repeat steps.
  TokenBatch batch(const Tokens& tokens, const Tokens& targets, std::int64_t streams, bool padded = false) {
    const auto count = static_cast<std::int64_t>(tokens.size());
    TokenBatch block{.inputs = ids(tokens, {streams, count / streams}),
                     .targets = targets.empty() ? Tensor() : ids(targets, {count}),
                     .partition = nullptr,
                     .lists = {}};
    if (model.tokens().clusters() == nullptr) return block;
    const std::vector<std::int32_t> inputs(tokens.begin(), tokens.end()), wanted(targets.begin(), targets.end());
    partition.assign(*model.tokens().clusters(), inputs, wanted, padded);
    block.partition = &partition;
    const Tokens values(partition.values().begin(), partition.values().end());
    block.lists = ids(values, {static_cast<std::int64_t>(values.size())});
    return block;
  }

  /// The same model in the words of the executable definition.
  reference::CharacterModel definition() {
    const AllAttentionOptions& options = model.options();
    reference::CharacterModel defined{
        .embedding = value("embedding.weight"),
        .positions = {.keys = value("position_keys"), .values = position_values()},
        .layers = {},
        .out_weight = value("output.weight"),
        .out_bias = value("output.bias"),
        .heads = options.heads,
        .ramp = options.ramp,
        .mask_offset = options.mask_offset,
        .pad = options.pad == Pad::mask ? reference::Pad::mask : reference::Pad::attend_zero};
    for (std::int64_t l = 0; l < options.layers; ++l) {
      const std::string layer = text("layers.", l, ".");
      const auto given = [&](bool there, const char* name) {
        return there ? value(layer + name) : reference::Array64{};
      };
      reference::ModelLayer made;
      const bool slots = options.slots > 0;
      using Place = reference::SlotPlace;
      switch (options.memory_mode) {
        case MemoryMode::attn_split:
          made.place = Place::own_softmax;
          break;
        case MemoryMode::head_split:
          made.place = Place::own_heads;
          break;
        case MemoryMode::single_head:
          made.place = Place::one_set;
          break;
        case MemoryMode::ff_attn:
          made.place = Place::second_sublayer;
          break;
        default:
          made.place = Place::joint;
      }
      made.attention = {.query = given(true, "attention.query"),
                        .key = given(true, "attention.key"),
                        .value = given(true, "attention.value"),
                        .out = given(true, "attention.output"),
                        .slot_keys = given(slots, "attention.persistent_keys"),
                        .slot_values = given(slots, "attention.persistent_values"),
                        .span = given(options.span == SpanKind::adaptive, "attention.span"),
                        .span_weight = given(options.span == SpanKind::dynamic, "attention.span_weight"),
                        .span_bias = given(options.span == SpanKind::dynamic, "attention.span_bias"),
                        .norm_gain = given(true, "attention_norm.gain"),
                        .norm_bias = given(true, "attention_norm.bias")};
      if (options.memory_mode == MemoryMode::ff_attn)
        made.slot_sublayer = reference::SlotSublayerWeights{.keys = given(true, "feed_forward.persistent_keys"),
                                                            .values = given(true, "feed_forward.persistent_values"),
                                                            .norm_gain = given(true, "feed_forward_norm.gain"),
                                                            .norm_bias = given(true, "feed_forward_norm.bias")};
      if (options.memory_mode == MemoryMode::transformer)
        made.feed_forward = reference::FeedForwardWeights{.in = given(true, "feed_forward.inner.weight"),
                                                          .in_bias = given(true, "feed_forward.inner.bias"),
                                                          .out = given(true, "feed_forward.outer.weight"),
                                                          .out_bias = given(true, "feed_forward.outer.bias"),
                                                          .norm_gain = given(true, "feed_forward_norm.gain"),
                                                          .norm_bias = given(true, "feed_forward_norm.bias")};
      defined.layers.push_back(std::move(made));
    }
    return defined;
  }
};

/// Largest difference of two arrays of one shape.
inline double largest_difference(const reference::Array64& a, const reference::Array64& b) {
  reference::require(a.shape == b.shape, "largest_difference: equal shapes");
  double largest = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    const double difference = std::abs(a.data[i] - b.data[i]);
    // A NaN must not look like agreement.
    if (!(difference <= largest)) largest = difference;
  }
  return largest;
}

}  // namespace engram::harness

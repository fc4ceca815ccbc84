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
#include "nn/memory/hidden_cache.hpp"
#include "nn/models/all_attention.hpp"
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

  explicit PlacedModel(const AllAttentionOptions& options, DType type = DType::f64, std::uint64_t seed = 3)
      : model(options), dtype(type) {
    collect(model, store);
    store.place(*backend, dtype, seed);
    model.refresh_spans(*backend);
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
    model.refresh_spans(*backend);
  }
  void set_spans(std::uint64_t seed) {
    reference::RandomArrays random(seed);
    for (std::int64_t layer = 0; layer < model.options().layers; ++layer) {
      reference::Array64 zeta = reference::zeros({model.options().heads});
      for (double& share : zeta.data) share = 0.5 + 0.5 * random.number();
      set(text("layers.", layer, ".attention.span"), zeta);
    }
  }

  ModelPast hidden(std::int64_t streams) { return model.hidden_past(*backend, heap, streams, dtype); }
  ModelPast ring(std::int64_t streams) { return model.key_value_past(*backend, heap, streams, dtype); }

  /// Logits [B, M, V] of one block of B streams, in inference mode.
  reference::Array64 logits(const Tokens& tokens, std::int64_t streams, ModelPast& past) {
    step.begin({});
    Tape tape(step, Tape::Mode::inference);
    const auto length = static_cast<std::int64_t>(tokens.size()) / streams;
    return read(model.forward(tape, ids(tokens, {streams, length}), past).value());
  }

  /// Sum of all losses of a block plus the span penalty; adds to the gradients.
  double train(const Tokens& tokens, const Tokens& targets, std::int64_t streams, ModelPast& past, double lambda) {
    step.begin({});
    Tape tape(step);
    const TokenBatch block = batch(tokens, targets, streams);
    std::vector<Variable> losses;
    double total = 0;
    for (LossPart& part : model.tokens().losses(model.hidden(tape, block, past), block, 1)) {
      total += read(part.loss.value()).data[0];
      losses.push_back(std::move(part.loss));
    }
    if (const Variable penalty = model.span_penalty(tape, lambda)) {
      total += read(penalty.value()).data[0];
      losses.push_back(penalty);
    }
    tape.backward(losses);
    return total;
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
        .position_keys = value("position_keys"),
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
      made.attention = {.query = given(true, "attention.query"),
                        .key = given(true, "attention.key"),
                        .value = given(true, "attention.value"),
                        .out = given(true, "attention.output"),
                        .slot_keys = given(slots, "attention.persistent_keys"),
                        .slot_values = given(slots, "attention.persistent_values"),
                        .span = given(options.adaptive_span, "attention.span"),
                        .norm_gain = given(true, "attention_norm.gain"),
                        .norm_bias = given(true, "attention_norm.bias")};
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

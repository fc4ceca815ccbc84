#pragma once
/// A small recurrent model with memory, its parameters readable and writable as plain arrays, and the golden models of
/// the [key-value-predict 8.1].

#include <cmath>
#include <string>
#include <vector>

#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "nn/models/recurrent.hpp"
#include "nn/visitor.hpp"
#include "tests/nn/placed_parameters.hpp"
#include "tests/reference/array64.hpp"

namespace engram::harness {

struct PlacedRecurrent : PlacedParameters {
  RecurrentModel model;
  TokenPartition partition;  // of the last batch, where the vocabulary is in clusters
  ModelPast past;
  Tensor window_weights;  // of the last run, where there are any
  double loss = 0;        // of the last run: what gradients are of
  StepScalars at;         // of the next runs: which step they are

  explicit PlacedRecurrent(const RecurrentOptions& options, std::int64_t streams = 1, DType type = DType::f64,
                           Backend& device = *available_backends().front())
      : PlacedParameters(device), model(options) {
    collect(model, store);
    store.place(backend, type, 3);
    past = model.training_past(backend, heap, streams, type);
  }

  void reset() {
    for (const auto& part : past) part->reset();
  }
  /// L2 norm of the gradients of all parameters.
  double gradient_norm() {
    double sum = 0;
    for (const auto& [name, parameter] : store.parameters())
      for (const double number : gradient(name).data) sum += number * number;
    return std::sqrt(sum);
  }

  struct Block {
    Ids inputs, targets;              ///< [B M], stream by stream
    Ids preceding = {};               ///< [B M], or none
    std::vector<double> counts = {};  ///< [B M] of 1 and 0, or none
    std::int64_t streams = 1;
  };
  TokenBatch batch(const Block& block) {
    const Shape shape{block.streams, static_cast<std::int64_t>(block.inputs.size()) / block.streams};
    TokenBatch made;
    made.inputs = ids(block.inputs, shape);
    if (!block.targets.empty()) made.targets = ids(block.targets, {std::ssize(block.targets)});
    if (!block.preceding.empty()) made.preceding = ids(block.preceding, shape);
    if (!block.counts.empty()) {
      made.scored = Tensor({shape.count()}, store.dtype(), backend.device(), heap);
      dispatch_float(store.dtype(), "test", [&]<class T>() {
        const std::vector<T> host(block.counts.begin(), block.counts.end());
        backend.copy(made.scored.raw(), host.data(), made.scored.bytes(), CopyKind::host_to_device);
      });
    }
    if (model.tokens().clusters() != nullptr) {
      const std::vector<std::int32_t> inputs(block.inputs.begin(), block.inputs.end()),
          targets(block.targets.begin(), block.targets.end());
      partition.assign(*model.tokens().clusters(), inputs, targets, backend.works_behind());
      made.partition = &partition;
      made.lists = ids({partition.values().begin(), partition.values().end()}, {std::ssize(partition.values())});
    }
    return made;
  }
  /// Losses of a batch by its hidden states [B, M', d]; `roots` gets what gradients are of.
  std::vector<double> losses_of(const Variable& hidden, const TokenBatch& made, double row_weight,
                                std::vector<Variable>* roots = nullptr) {
    std::vector<double> rows(static_cast<std::size_t>(made.targets.count()));
    loss = 0;
    for (const LossPart& part : model.tokens().losses(hidden, made, row_weight)) {
      const std::vector<double> found = to_host(backend, part.row_loss).data;
      const std::size_t count = part.rows ? part.rows->size() : rows.size();
      for (std::size_t i = 0; i < count; ++i)
        rows[part.rows ? static_cast<std::size_t>((*part.rows)[i]) : i] += found[i];
      loss += to_host(backend, part.loss.value()).data[0];
      if (roots != nullptr) roots->push_back(part.loss);
    }
    return rows;
  }
  /// Losses of all targets, whether they count or not; in training mode each counts with this weight, and gradients are
  /// added to.
  std::vector<double> losses(const Block& block, Tape::Mode mode = Tape::Mode::inference, double row_weight = 1) {
    step.begin(at);
    Tape tape(step, mode);
    ModelTrace trace(step.objects());
    trace.keep_window_weights = true;
    const TokenBatch made = batch(block);
    std::vector<Variable> roots;
    std::vector<double> rows = losses_of(model.hidden(tape, made, past, &trace), made, row_weight, &roots);
    if (mode == Tape::Mode::training && differentiates) tape.backward(roots);
    window_weights = trace.window_weights;
    return rows;
  }
  std::vector<double> train(const Block& block, double row_weight) {
    return losses(block, Tape::Mode::training, row_weight);
  }
};

/// The numbers of [key-value-predict 8.1]: 0.5 sin(1.3 i + 0.7 s + 0.2).
inline std::vector<double> spec_fill(int s, std::int64_t count) {
  std::vector<double> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(0.5 * std::sin(1.3 * double(i) + 0.7 * s + 0.2));
  return numbers;
}
/// Several of them, one below the other.
inline std::vector<double> spec_fills(std::initializer_list<int> which, std::int64_t count) {
  std::vector<double> all;
  for (const int s : which) {
    const std::vector<double> one = spec_fill(s, count);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

/// V = 7, w = 3, k = 6.
inline RecurrentOptions gold_options(RecurrentCell encoder, ReadoutKind readout, std::int64_t parts = 1) {
  return {.vocabulary = 7,
          .embedding_width = 3,
          .width = 6,
          .encoder = encoder,
          .order = 3,
          .decay = 0.6,
          .readout = readout,
          .window = 3,
          .parts = parts};
}

/// Gives all parameters of a model of gold_options() the values of [key-value-predict 8.1].
inline void set_gold_values(PlacedRecurrent& placed) {
  const RecurrentOptions& options = placed.model.options();
  const std::int64_t k = options.width, d = options.hidden_width(), w = options.vector_width();
  placed.set("embedding.weight", spec_fill(1, 7 * w));
  placed.set("output.weight", spec_fill(20, 7 * d));
  placed.set("output.bias", spec_fill(21, 7));
  switch (options.encoder) {
    case RecurrentCell::lstm: {
      placed.set("encoder.input", spec_fill(2, 4 * k * w));
      placed.set("encoder.recurrent", spec_fill(3, 4 * k * k));
      std::vector<double> bias = spec_fill(4, 4 * k);
      std::fill_n(bias.begin() + k, k, 1.0);
      placed.set("encoder.bias", bias);
      break;
    }
    case RecurrentCell::rnn:
      placed.set("encoder.input", spec_fill(2, k * w));
      placed.set("encoder.recurrent", spec_fill(3, k * k));
      placed.set("encoder.bias", spec_fill(4, k));
      break;
    case RecurrentCell::hornn_fofe:
      placed.set("encoder.input", spec_fill(2, k * w));
      placed.set("encoder.recurrent", spec_fills({5, 6, 7}, k * k));
      placed.set("encoder.bias", spec_fill(4, k));
      break;
    case RecurrentCell::hornn_gated:
      placed.set("encoder.input", spec_fills({2, 9, 10, 11}, k * w));
      placed.set("encoder.recurrent", spec_fills({5, 6, 7, 13, 14, 15}, k * k));
      placed.set("encoder.bias", spec_fill(4, k));
      break;
    case RecurrentCell::qrnn:
      throw Error("test: a qrnn has no gold values");
  }
  if (options.attends()) {
    placed.set("readout.key", spec_fill(5, d * d));
    placed.set("readout.query", spec_fill(6, d * d));
    placed.set("readout.score", spec_fill(7, d));
    const std::vector<double> read = spec_fill(8, d * d), predict = spec_fill(9, d * d);
    std::vector<double> both;
    for (std::int64_t row = 0; row < d; ++row)
      for (const auto* part : {&read, &predict}) both.insert(both.end(), &(*part)[row * d], &(*part)[row * d] + d);
    placed.set("readout.output", both);
  }
  if (options.readout == ReadoutKind::n_gram) placed.set("readout.output", spec_fill(10, d * k));
  if (options.readout == ReadoutKind::recurrent_memory) {
    placed.set("readout.keys", spec_fill(11, 7 * k));
    placed.set("readout.values", spec_fill(12, 7 * k));
    placed.set("readout.temporal", spec_fill(13, 3 * k));
    placed.set("readout.memory", spec_fills({14, 16, 18}, k * k));
    placed.set("readout.state", spec_fills({15, 17}, k * k));
    placed.set("readout.candidate", spec_fill(19, k * k));
    placed.set("readout.bias", spec_fills({22, 23, 24}, k));
  }
}

}  // namespace engram::harness

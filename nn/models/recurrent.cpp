#include "nn/models/recurrent.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "autograd/functions/dropout.hpp"
#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/scope.hpp"
#include "nn/init.hpp"
#include "nn/option_rules.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

TokenIoOptions token_options(const RecurrentOptions& options) {
  const Initializer uniform = init::uniform(options.init_range);
  return {.vocabulary = options.vocabulary,
          .width = options.hidden_width(),
          .embedding_width = options.vector_width(),
          .cutoffs = options.cutoffs,
          .divisor = options.divisor,
          .cluster_order = ClusterOrder::natural,
          .tie_tables = options.tie_tables,
          .tie_projections = options.tie_tables,
          .untied_projections = {},
          .tie_plain = options.tie_tables && options.cutoffs.empty(),
          .own_input_width = true,
          .scale_input = false,
          .start = TokenStart{.table = uniform, .weight = uniform, .projection = uniform, .bias = uniform},
          .logits_bytes = options.logits_memory << 20};
}

/// What is remembered of one layer, in positions; those of which there are none have no part of the past.
struct LayerReach {
  std::int64_t states, cells, inputs;
  LayerReach(const RecurrentOptions& options, std::int64_t layer)
      : states(std::max(options.state_reach(), layer + 1 == options.layers ? options.readout_reach() : 0)),
        cells(options.has_cells() ? 1 : 0),
        inputs(options.input_reach(layer)) {}
  std::int64_t parts() const { return (states > 0) + (cells > 0) + (inputs > 0); }
};

/// Whether words have a part of the past.
bool keeps_words(const RecurrentOptions& options) {
  return options.readout == ReadoutKind::recurrent_memory && options.window > 1;
}

std::size_t past_parts(const RecurrentOptions& options) {
  std::int64_t parts = keeps_words(options);
  for (std::int64_t layer = 0; layer < options.layers; ++layer) parts += LayerReach(options, layer).parts();
  return static_cast<std::size_t>(parts);
}

/// The parts of a past that are of one layer; nullptr where it has no such part.
struct LayerParts {
  RecurrentPast *states = nullptr, *cells = nullptr, *inputs = nullptr;

  /// Goes on in the past behind them.
  LayerParts(const LayerReach& reach, ModelPast::iterator& next) {
    const auto part = [&next](std::int64_t length) { return length > 0 ? &recurrent_past(**next++) : nullptr; };
    states = part(reach.states);
    cells = part(reach.cells);
    inputs = part(reach.inputs);
  }
  EncoderStart start() const {
    const auto of = [](const RecurrentPast* part) { return part == nullptr ? Tensor() : part->states(); };
    return {.states = of(states), .cells = of(cells), .inputs = of(inputs)};
  }
  void push(Step& step, const EncoderStates& made) const {
    if (states != nullptr) states->push(step, made.recurrent);
    if (cells != nullptr) cells->push(step, made.cells);
    if (inputs != nullptr) inputs->push(step, made.inputs);
  }
};

/// Of a past [B, C, n], no position.
Tensor none_of(Step& step, const Tensor& states) {
  return step.empty({states.shape()[0], 0, states.shape()[2]}, states.dtype());
}

}  // namespace

RecurrentModel::RecurrentModel(const RecurrentOptions& options)
    : LanguageModel(make_token_io(token_options(checked(options)))),
      options_(options),
      input_dropout_(options.input_dropout, options.dropout_over_time),
      layer_dropout_(options.layer_dropout, options.dropout_over_time),
      output_dropout_(options.output_dropout, options.dropout_over_time),
      encoder_(options),
      readout_(make_readout(options)) {}

ModelPast RecurrentModel::make_training_past(const PastPlace& place) const {
  ModelPast past;
  const auto add = [&](std::int64_t length, std::int64_t width, DType dtype) {
    if (length > 0) past.push_back(std::make_unique<RecurrentPast>(place.with(dtype), length, width));
  };
  for (std::int64_t layer = 0; layer < options_.layers; ++layer) {
    const LayerReach reach(options_, layer);
    add(reach.states, options_.layer_width(layer), place.dtype);
    add(reach.cells, options_.layer_width(layer), place.dtype);
    add(reach.inputs, options_.layer_input(layer), place.dtype);
  }
  if (keeps_words(options_)) add(options_.readout_reach(), 1, DType::i32);
  return past;
}

void RecurrentModel::check_batch(const TokenBatch& batch, const ModelPast& past) const {
  if (past.empty()) throw Error("model: needs a past of its own (training_past), got an empty one");
  check_tokens(batch, past, past_parts(options_));
  if (batch.fed_again != 0)
    throw Error(text("model: a recurrent model reads every token once, got a block of which ", batch.fed_again,
                     " tokens come again"));
  if (!batch.preceding) return;
  check_shape("model", "preceding", batch.preceding, batch.inputs.shape());
  check_dtype("model", "preceding", batch.preceding, DType::i32);
}

const Tensor& RecurrentModel::preceding(Step& step, const TokenBatch& batch, std::int64_t seen) {
  if (batch.preceding) return batch.preceding;
  // More than anything looks back is all the same.
  const std::int64_t most = options_.longest_reach();
  const std::int64_t streams = batch.inputs.shape()[0], block = batch.inputs.shape()[1];
  const std::int64_t before = std::min(seen, most);
  return constants_.index(step, {streams, block, before, most}, {streams, block},
                          [=](std::int64_t i) { return std::min(before + i % block, most); });
}

Variable RecurrentModel::embedded(Tape& tape, const TokenBatch& batch) {
  const Scope scope("embedding");
  return input_dropout_(word_dropout(tokens().embed(tape, batch), batch.inputs, options_.word_dropout));
}

Variable RecurrentModel::hidden(Tape& tape, const TokenBatch& batch, ModelPast& past, ModelTrace* trace) {
  check_batch(batch, past);
  Step& step = tape.step();
  const Tensor before = preceding(step, batch, recurrent_past(*past.front()).valid());
  Variable vectors = embedded(tape, batch);
  auto next = past.begin();
  LayerParts own(LayerReach(options_, 0), next);
  EncoderStates encoded;
  {
    const Scope scope("encoder");
    for (std::int64_t layer = 0; layer < options_.layers; ++layer) {
      if (layer > 0) {
        own.push(step, encoded);
        own = LayerParts(LayerReach(options_, layer), next);
        vectors = layer_dropout_(encoded.states);
      }
      const std::string name = options_.layers == 1 ? std::string() : text("layers.", layer);
      const std::optional<Scope> part = name.empty() ? std::nullopt : std::optional<Scope>(std::in_place, name);
      encoded = encoder_[layer].forward(vectors, own.start(), before);
    }
  }
  const bool carries = tape.training() ? options_.carry == Carry::detached : options_.carry_evaluation;
  RecurrentPast* const words = next == past.end() ? nullptr : &recurrent_past(**next);
  ReadoutContext context{
      .states = encoded.states,
      .past_states = carries && own.states != nullptr ? own.states->states() : none_of(step, encoded.recurrent),
      .words = batch.inputs,
      .past_words = {},
      .preceding = before};
  if (options_.readout == ReadoutKind::recurrent_memory) {
    const std::int64_t streams = batch.inputs.shape()[0];
    context.past_words = words != nullptr && carries ? words->states() : step.empty({streams, 0, 1}, DType::i32);
  }
  Variable hidden;
  {
    const Scope scope("readout");
    const bool traced = trace != nullptr && trace->keep_window_weights;
    hidden = readout_->forward(tape, context, traced ? &trace->window_weights : nullptr);
  }
  own.push(step, encoded);
  if (words != nullptr) {
    const Shape& shape = batch.inputs.shape();
    words->push(step, batch.inputs.view({shape[0], shape[1], 1}));
  }
  const Scope scope("output");
  return output_dropout_(hidden);
}

void RecurrentModel::visit(Visitor& visit) {
  visit("embedding", tokens().input());
  visit("encoder", encoder_);
  visit("readout", *readout_);
  visit("output", tokens().output());
}

}  // namespace engram

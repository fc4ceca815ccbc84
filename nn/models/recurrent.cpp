#include "nn/models/recurrent.hpp"

#include <algorithm>

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
          .cutoffs = {},
          .untied_projections = {},
          .own_input_width = true,
          .start = TokenStart{.table = uniform, .weight = uniform, .projection = uniform, .bias = uniform},
          .logits_bytes = options.logits_memory << 20};
}

/// Positions of a past of states.
std::int64_t remembered(const RecurrentOptions& options) {
  return std::max(options.encoder_reach(), options.readout_reach());
}

/// Whether cells, or words, have a part of the past.
bool keeps_cells(const RecurrentOptions& options) { return options.encoder == RecurrentCell::lstm; }
bool keeps_words(const RecurrentOptions& options) {
  return options.readout == ReadoutKind::recurrent_memory && options.window > 1;
}

/// Of a past [B, C, n], no position.
Tensor none_of(Step& step, const Tensor& states) {
  return step.empty({states.shape()[0], 0, states.shape()[2]}, states.dtype());
}

}  // namespace

RecurrentModel::RecurrentModel(const RecurrentOptions& options)
    : LanguageModel(make_token_io(token_options(checked(options)))),
      options_(options),
      encoder_(options),
      readout_(make_readout(options)) {}

ModelPast RecurrentModel::make_training_past(const PastPlace& place) const {
  ModelPast past;
  const auto add = [&](std::int64_t length, std::int64_t width, DType dtype) {
    past.push_back(std::make_unique<RecurrentPast>(place.with(dtype), length, width));
  };
  add(remembered(options_), options_.width, place.dtype);
  if (keeps_cells(options_)) add(1, options_.width, place.dtype);
  if (keeps_words(options_)) add(options_.readout_reach(), 1, DType::i32);
  return past;
}

RecurrentModel::Pasts RecurrentModel::pasts_in(ModelPast& past) const {
  auto next = past.begin();
  const auto part = [&next](bool there) { return there ? &recurrent_past(**next++) : nullptr; };
  return {.states = part(true), .cells = part(keeps_cells(options_)), .words = part(keeps_words(options_))};
}

void RecurrentModel::check_batch(const TokenBatch& batch, const ModelPast& past) const {
  if (past.empty()) throw Error("model: needs a past of its own (training_past), got an empty one");
  check_tokens(batch, past, 1u + keeps_cells(options_) + keeps_words(options_));
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
  const std::int64_t most = remembered(options_), streams = batch.inputs.shape()[0], block = batch.inputs.shape()[1];
  const std::int64_t before = std::min(seen, most);
  return constants_.index(step, {streams, block, before, most}, {streams, block},
                          [=](std::int64_t i) { return std::min(before + i % block, most); });
}

Variable RecurrentModel::hidden(Tape& tape, const TokenBatch& batch, ModelPast& past, ModelTrace* trace) {
  check_batch(batch, past);
  Step& step = tape.step();
  const auto [states, cells, words] = pasts_in(past);
  const Tensor before = preceding(step, batch, states->valid());
  Variable vectors;
  {
    const Scope scope("embedding");
    vectors = tokens().embed(tape, batch);
  }
  RecurrentEncoder::Result encoded;
  {
    const Scope scope("encoder");
    encoded = encoder_.forward(
        vectors, {.hidden = states->states(), .cells = cells == nullptr ? Tensor() : cells->states()}, before);
  }
  const bool carries = tape.training() ? options_.carry == Carry::detached : options_.carry_evaluation;
  ReadoutContext context{.states = encoded.states,
                         .past_states = carries ? states->states() : none_of(step, states->states()),
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
  states->push(step, encoded.recurrent);
  if (cells != nullptr) cells->push(step, encoded.cells);
  if (words != nullptr) {
    const Shape& shape = batch.inputs.shape();
    words->push(step, batch.inputs.view({shape[0], shape[1], 1}));
  }
  return hidden;
}

void RecurrentModel::visit(Visitor& visit) {
  visit("embedding", tokens().input());
  visit("encoder", encoder_);
  visit("readout", *readout_);
  visit("output", tokens().output());
}

}  // namespace engram

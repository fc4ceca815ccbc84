#include "nn/models/all_attention.hpp"

#include <algorithm>

#include "autograd/functions/add.hpp"
#include "autograd/functions/dropout.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/scope.hpp"
#include "nn/init.hpp"
#include "nn/option_rules.hpp"
#include "nn/past/hidden_cache.hpp"
#include "nn/past/key_value_ring.hpp"

namespace engram {
namespace {

SpanOptions span_options(const AllAttentionOptions& options) {
  return {.kind = options.span,
          .max_span = options.max_span,
          .ramp = static_cast<int>(options.ramp),
          .init = options.span_init,
          .mask_offset = static_cast<int>(options.mask_offset),
          .ramp_gradient = options.ramp_gradient};
}

TokenIoOptions token_options(const AllAttentionOptions& options) {
  return {.vocabulary = options.vocabulary,
          .width = options.width,
          .cutoffs = options.cutoffs,
          .tie_tables = options.tie_tables,
          .tie_projections = options.tie_projections,
          .untied_projections = {},
          .table_init = options.table_init,
          .start = {}};
}

/// Attention to slots with a softmax of their own keeps its weights in a memory of its own.
std::int64_t keep_bytes(const AllAttentionOptions& options) {
  const bool two_calls = options.memory_mode != MemoryMode::all && options.memory_mode != MemoryMode::none &&
                         options.memory_mode != MemoryMode::transformer;
  return (options.attention_memory << 20) / options.layers / (two_calls ? 2 : 1);
}

}  // namespace

AllAttentionLayer::AllAttentionLayer(const AllAttentionOptions& options, std::unique_ptr<ProductKeyMemory> memory)
    : attention_({.width = options.width,
                  .heads = static_cast<int>(options.heads),
                  .mode = options.memory_mode,
                  .slots = options.slots,
                  .dropout = options.dropout,
                  .keep_bytes = keep_bytes(options),
                  .span = span_options(options),
                  .start = options.attention_init}),
      attention_norm_(options.width),
      keep_bytes_(keep_bytes(options)),
      dropout_(options.dropout),
      sublayer_(options.memories.placement, std::move(memory), [&options] {
        std::optional<FeedForward> made;
        if (options.memory_mode == MemoryMode::transformer) made.emplace(options.width, options.inner, options.dropout);
        return made;
      }) {
  if (options.memory_mode == MemoryMode::ff_attn) memory_.emplace(1, options.inner, options.width);
  if (has_second_sublayer(options.memory_mode)) feed_forward_norm_.emplace(options.width);
}

Variable AllAttentionLayer::forward(const Variable& x, AttentionPast& past, const PositionTables& positions,
                                    const LayerTrace& trace) {
  Variable hidden;
  {
    const Scope scope("attention");
    hidden = attention_norm_.forward(attention_.forward(x, past, positions, trace.attention), x);
  }
  const Scope scope("feed_forward");
  if (sublayer_.exists()) {
    hidden = feed_forward_norm_->forward(sublayer_.forward(hidden, trace.memory), hidden);
  } else if (memory_) {
    hidden = feed_forward_norm_->forward(memory_->attend(hidden, dropout_, keep_bytes_, trace.attention), hidden);
  }
  return sublayer_.behind(hidden, trace.memory);
}

void AllAttentionLayer::visit(Visitor& visit) {
  visit("attention", attention_);
  visit("attention_norm", attention_norm_);
  sublayer_.visit(visit);
  if (memory_) visit("feed_forward", *memory_);
  if (feed_forward_norm_) visit("feed_forward_norm", *feed_forward_norm_);
}

AllAttentionModel::AllAttentionModel(const AllAttentionOptions& options)
    : LanguageModel(make_token_io(token_options(checked(options)))),
      options_(options),
      position_keys_({options.max_span, options.width / options.heads}, init::standard_normal()) {
  if (options.position_values == PositionValues::own)
    position_values_.emplace(position_keys_.shape(), init::standard_normal());
  const MemoryMaker memories(options.memories, options.width, options.layers);
  for (std::int64_t layer = 0; layer < options.layers; ++layer)
    layers_.push_back(std::make_unique<AllAttentionLayer>(options, memories.make(layer)));
  for (const auto& layer : layers_) spans_.push_back(&layer->attention().span());
}

ModelPast AllAttentionModel::make_training_past(const PastPlace& place) const {
  ModelPast past;
  for (const AttentionSpan* const span : spans_)
    past.push_back(std::make_unique<HiddenCache>(place, options_.width, options_.pad, span->extent()));
  return past;
}

ModelPast AllAttentionModel::make_frozen_past(const PastPlace& place, std::int64_t) const {
  ModelPast past;
  for (const AttentionSpan* const span : spans_)
    past.push_back(
        std::make_unique<KeyValueRing>(place, options_.width / options_.heads, options_.pad, span->windows()));
  return past;
}

Variable AllAttentionModel::hidden(Tape& tape, const TokenBatch& batch, ModelPast& past, ModelTrace* trace) {
  check_tokens(batch, past, layers_.size());
  Variable hidden;
  {
    const Scope scope("embedding");
    hidden = dropout(tokens().embed(tape, batch), options_.embedding_dropout);
  }
  PositionTables positions{.keys = tape.parameter(position_keys_), .values = {}};
  if (options_.position_values == PositionValues::shared) positions.values = positions.keys;
  if (position_values_) positions.values = tape.parameter(*position_values_);
  hidden = through_layers(layers_.size(), std::move(hidden), trace,
                          [&](std::size_t layer, const Variable& x, const LayerTrace& seen) {
                            return layers_[layer]->forward(x, attention_past(*past[layer]), positions, seen);
                          });
  const Scope scope("output");
  return dropout(hidden, options_.embedding_dropout);
}

Variable AllAttentionModel::forward(Tape& tape, const Tensor& ids, ModelPast& past) {
  return tokens().logits(hidden(tape, {.inputs = ids, .targets = {}, .partition = nullptr, .lists = {}}, past));
}

Variable AllAttentionModel::penalty(const ModelTrace& trace, double lambda, double share) const {
  Variable total;
  if (lambda == 0) return total;
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const Variable penalty = spans_[layer]->penalty(trace.layers.at(layer).span, lambda, share);
    if (penalty) total = total ? add(total, penalty) : penalty;
  }
  return total;
}

void AllAttentionModel::refresh(Backend& backend) { AttentionSpan::refresh(backend, spans_); }

std::int64_t AllAttentionModel::reach() const {
  // The spans of queries are not known before they are computed.
  if (options_.span == SpanKind::dynamic) return options_.layers * options_.max_span;
  std::int64_t sum = 0;
  for (const AttentionSpan* const span : spans_) sum += std::ranges::max(span->reach());
  return sum;
}

AttentionSpan& AllAttentionModel::span(std::int64_t layer) {
  return layers_.at(static_cast<std::size_t>(layer))->attention().span();
}
const AttentionSpan& AllAttentionModel::span(std::int64_t layer) const {
  return layers_.at(static_cast<std::size_t>(layer))->attention().span();
}

void AllAttentionModel::visit(Visitor& visit) {
  visit("embedding", tokens().input());
  visit("position_keys", position_keys_);
  if (position_values_) visit("position_values", *position_values_);
  visit("layers", layers_);
  visit("output", tokens().output());
}

}  // namespace engram

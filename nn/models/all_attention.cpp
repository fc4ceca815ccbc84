#include "nn/models/all_attention.hpp"

#include <algorithm>

#include "autograd/functions/add.hpp"
#include "autograd/functions/dropout.hpp"
#include "autograd/tape.hpp"
#include "core/check.hpp"
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
                  .span = span_options(options)}),
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
                                    AttentionTrace* trace, MemoryTrace* memory_trace) {
  Variable hidden;
  {
    const Scope scope("attention");
    hidden = attention_norm_.forward(attention_.forward(x, past, positions, trace), x);
  }
  const Scope scope("feed_forward");
  if (sublayer_.exists()) {
    hidden = feed_forward_norm_->forward(sublayer_.forward(hidden, memory_trace), hidden);
  } else if (memory_) {
    const AttentionResult known = memory_->attend(hidden, dropout_, kept_bytes(trace, keep_bytes_));
    if (trace != nullptr && trace->keep_results) trace->slots = known;
    hidden = feed_forward_norm_->forward(known.out, hidden);
  }
  return sublayer_.behind(hidden, memory_trace);
}

void AllAttentionLayer::visit(Visitor& visit) {
  visit("attention", attention_);
  visit("attention_norm", attention_norm_);
  sublayer_.visit(visit);
  if (memory_) visit("feed_forward", *memory_);
  if (feed_forward_norm_) visit("feed_forward_norm", *feed_forward_norm_);
}

AllAttentionModel::AllAttentionModel(const AllAttentionOptions& options)
    : options_(checked(options)),
      tokens_(make_token_io({.vocabulary = options.vocabulary,
                             .width = options.width,
                             .cutoffs = options.cutoffs,
                             .tie_tables = options.tie_tables,
                             .tie_projections = options.tie_projections,
                             .table_init = options.table_init})),
      position_keys_({options.max_span, options.width / options.heads}, init::standard_normal()) {
  if (options.position_values == PositionValues::own)
    position_values_.emplace(position_keys_.shape(), init::standard_normal());
  const MemoryMaker memories(options.memories, options.width, options.layers);
  for (std::int64_t layer = 0; layer < options.layers; ++layer)
    layers_.push_back(std::make_unique<AllAttentionLayer>(options, memories.make(layer)));
  for (const auto& layer : layers_) spans_.push_back(&layer->attention().span());
}

ModelPast AllAttentionModel::training_past(Backend& backend, Allocator& allocator, std::int64_t streams,
                                           DType dtype) const {
  ModelPast past;
  for (std::int64_t layer = 0; layer < options_.layers; ++layer)
    past.push_back(std::make_unique<HiddenCache>(backend, allocator, streams, options_.width, dtype, options_.pad,
                                                 span(layer).extent()));
  return past;
}

ModelPast AllAttentionModel::frozen_past(Backend& backend, Allocator& allocator, std::int64_t streams, DType dtype,
                                         std::int64_t) const {
  ModelPast past;
  for (std::int64_t layer = 0; layer < options_.layers; ++layer)
    past.push_back(std::make_unique<KeyValueRing>(backend, allocator, streams, options_.width / options_.heads, dtype,
                                                  options_.pad, span(layer).windows()));
  return past;
}

Variable AllAttentionModel::hidden(Tape& tape, const TokenBatch& batch, ModelPast& past, ModelTrace* trace) {
  const Tensor& tokens = batch.inputs;
  if (tokens.shape().rank() != 2) throw ShapeError(text("model: tokens must be [B, M], got ", tokens.shape()));
  check_dtype("model", "tokens", tokens, DType::i32);
  if (past.size() != layers_.size())
    throw Error(text("model: needs the past of ", layers_.size(), " layers, got ", past.size()));
  Variable hidden;
  {
    const Scope scope("embedding");
    hidden = dropout(tokens_->embed(tape, batch), options_.embedding_dropout);
  }
  PositionTables positions{.keys = tape.parameter(position_keys_), .values = {}};
  if (options_.position_values == PositionValues::shared) positions.values = positions.keys;
  if (position_values_) positions.values = tape.parameter(*position_values_);
  if (trace != nullptr) trace->begin(layers_.size());
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const std::string name = text("layers.", layer);
    const Scope scope(name);
    hidden = layers_[layer]->forward(hidden, attention_past(*past[layer]), positions,
                                     trace == nullptr ? nullptr : &trace->layers[layer],
                                     trace == nullptr ? nullptr : trace->memory(layer));
  }
  const Scope scope("output");
  return dropout(hidden, options_.embedding_dropout);
}

Variable AllAttentionModel::forward(Tape& tape, const Tensor& tokens, ModelPast& past) {
  return tokens_->logits(hidden(tape, {.inputs = tokens, .targets = {}, .partition = nullptr, .lists = {}}, past));
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
  visit("embedding", tokens_->input());
  visit("position_keys", position_keys_);
  if (position_values_) visit("position_values", *position_values_);
  visit("layers", layers_);
  visit("output", tokens_->output());
}

}  // namespace engram

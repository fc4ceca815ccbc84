#include "nn/models/product_key_transformer.hpp"

#include <string>

#include "autograd/functions/add.hpp"
#include "autograd/functions/dropout.hpp"
#include "autograd/functions/embedding.hpp"
#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/scope.hpp"
#include "nn/init.hpp"
#include "nn/option_rules.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

LayerNorm layer_norm(const ProductKeyTransformerOptions& options) {
  return LayerNorm(options.width, init::ones(), options.norm_epsilon);
}

}  // namespace

ProductKeyTransformerLayer::ProductKeyTransformerLayer(const ProductKeyTransformerOptions& options,
                                                       std::unique_ptr<ProductKeyMemory> memory)
    : pre_norm_(options.pre_norm),
      dropout_(options.dropout),
      attention_({.width = options.width,
                  .heads = static_cast<int>(options.heads),
                  .dropout = options.attention_dropout,
                  .keep_bytes = (options.attention_memory << 20) / options.layers}),
      attention_norm_(layer_norm(options)),
      sublayer_(
          options.memories.placement, std::move(memory),
          [&options] { return FeedForward(options.width, options.feed_forward_width(), 0.0, options.activation); }),
      feed_forward_norm_(layer_norm(options)) {}

Variable ProductKeyTransformerLayer::forward(const Variable& x, const WindowContext& context, AttentionTrace* trace,
                                             MemoryTrace* memory_trace) {
  Variable hidden;
  {
    const Scope scope("attention");
    const Variable input = pre_norm_ ? attention_norm_.forward(x) : x;
    const Variable mixed = dropout(attention_.forward(input, context, trace), dropout_);
    hidden = pre_norm_ ? add(mixed, x) : attention_norm_.forward(mixed, x);
  }
  const Scope scope("feed_forward");
  const Variable known =
      sublayer_.forward(pre_norm_ ? feed_forward_norm_.forward(hidden) : hidden, memory_trace, dropout_);
  hidden = pre_norm_ ? add(known, hidden) : feed_forward_norm_.forward(known, hidden);
  return sublayer_.behind(hidden, memory_trace);
}

void ProductKeyTransformerLayer::visit(Visitor& visit) {
  visit("attention", attention_);
  visit("attention_norm", attention_norm_);
  sublayer_.visit(visit);
  visit("feed_forward_norm", feed_forward_norm_);
}

ProductKeyTransformer::ProductKeyTransformer(const ProductKeyTransformerOptions& options)
    : options_(checked(options)),
      tokens_(make_token_io({.vocabulary = options.vocabulary,
                             .width = options.width,
                             .cutoffs = {},
                             .untied_projections = {},
                             .tie_plain = true,
                             .scale_input = false,
                             .table_init = TableInit::scaled,
                             .start = {}})),
      positions_({options.position_rows, options.width},
                 init::normal_variance(1.0 / static_cast<double>(options.width))),
      embedding_norm_(layer_norm(options)),
      contexts_(options.heads) {
  const MemoryMaker memories(options.memories, options.width, options.layers);
  for (std::int64_t layer = 0; layer < options.layers; ++layer)
    layers_.push_back(std::make_unique<ProductKeyTransformerLayer>(options, memories.make(layer)));
  if (options.pre_norm) output_norm_.emplace(layer_norm(options));
}

ModelPast ProductKeyTransformer::training_past(Backend&, Allocator&, std::int64_t, DType) const { return {}; }
ModelPast ProductKeyTransformer::frozen_past(Backend&, Allocator&, std::int64_t, DType, std::int64_t) const {
  return {};
}

void ProductKeyTransformer::check_batch(const TokenBatch& batch, const ModelPast& past) const {
  const Shape& shape = batch.inputs.shape();
  if (shape.rank() != 2) throw ShapeError(text("model: tokens must be [B, M], got ", shape));
  check_dtype("model", "tokens", batch.inputs, DType::i32);
  if (!past.empty()) throw Error(text("model: remembers nothing, got the past of ", past.size(), " layers"));
  const std::int64_t block = shape[1];
  if (block < 1) throw ShapeError(text("model: a block must have tokens, got ", shape));
  if (batch.context < 0 || batch.context >= block)
    throw Error(text("model: context must be in [0, ", block, "), the block's length, got ", batch.context));
  if (block > options_.position_rows)
    throw UsageError(text("model: a block must have at most ", options_.position_rows,
                          " tokens, the rows of the table of positions (model.position_rows), got ", block));
}

Variable ProductKeyTransformer::hidden(Tape& tape, const TokenBatch& batch, ModelPast& past, ModelTrace* trace) {
  check_batch(batch, past);
  const std::int64_t streams = batch.inputs.shape()[0], block = batch.inputs.shape()[1];
  Variable hidden;
  {
    const Scope scope("embedding");
    const Tensor& rows = constants_.index(tape.step(), {streams, block}, {streams, block},
                                          [block](std::int64_t i) { return i % block; });
    const Variable positions = embedding(tape.parameter(positions_), rows);
    hidden = dropout(embedding_norm_.forward(tokens_->embed(tape, batch), positions), options_.dropout);
  }
  const WindowContext context = contexts_.of(hidden);
  if (trace != nullptr) trace->begin(layers_.size());
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    const std::string name = text("layers.", layer);
    const Scope scope(name);
    hidden = layers_[layer]->forward(hidden, context, trace == nullptr ? nullptr : &trace->layers[layer],
                                     trace == nullptr ? nullptr : trace->memory(layer));
  }
  const Scope scope("output");
  return output_norm_ ? output_norm_->forward(hidden) : hidden;
}

void ProductKeyTransformer::visit(Visitor& visit) {
  visit("embedding", tokens_->input());
  visit("positions", positions_);
  visit("embedding_norm", embedding_norm_);
  visit("layers", layers_);
  if (output_norm_) visit("output_norm", *output_norm_);
  visit("output", tokens_->output());
}

}  // namespace engram

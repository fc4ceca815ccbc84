#include "nn/models/product_key_transformer.hpp"

#include "autograd/functions/dropout.hpp"
#include "autograd/functions/embedding.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/scope.hpp"
#include "nn/init.hpp"
#include "nn/option_rules.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

TokenIoOptions token_options(const ProductKeyTransformerOptions& options) {
  return {.vocabulary = options.vocabulary,
          .width = options.width,
          .cutoffs = {},
          .untied_projections = {},
          .tie_plain = true,
          .scale_input = false,
          .table_init = TableInit::scaled,
          .start = {}};
}

LayerNorm layer_norm(const ProductKeyTransformerOptions& options) {
  return LayerNorm(options.width, init::ones(), options.norm_epsilon);
}

}  // namespace

ProductKeyTransformerLayer::ProductKeyTransformerLayer(const ProductKeyTransformerOptions& options,
                                                       std::unique_ptr<ProductKeyMemory> memory)
    : dropout_(options.dropout),
      attention_({.width = options.width,
                  .heads = static_cast<int>(options.heads),
                  .dropout = options.attention_dropout,
                  .keep_bytes = (options.attention_memory << 20) / options.layers}),
      attention_residual_(layer_norm(options), options.pre_norm),
      sublayer_(
          options.memories.placement, std::move(memory),
          [&options] { return FeedForward(options.width, options.feed_forward_width(), 0.0, options.activation); }),
      feed_forward_residual_(layer_norm(options), options.pre_norm) {}

Variable ProductKeyTransformerLayer::forward(const Variable& x, const WindowContext& context, const LayerTrace& trace) {
  Variable hidden;
  {
    const Scope scope("attention");
    const Variable mixed =
        dropout(attention_.forward(attention_residual_.before(x), context, trace.attention), dropout_);
    hidden = attention_residual_.after(mixed, x);
  }
  const Scope scope("feed_forward");
  const Variable known = sublayer_.forward(feed_forward_residual_.before(hidden), trace.memory, dropout_);
  hidden = feed_forward_residual_.after(known, hidden);
  return sublayer_.behind(hidden, trace.memory);
}

void ProductKeyTransformerLayer::visit(Visitor& visit) {
  visit("attention", attention_);
  visit("attention_norm", attention_residual_);
  sublayer_.visit(visit);
  visit("feed_forward_norm", feed_forward_residual_);
}

ProductKeyTransformer::ProductKeyTransformer(const ProductKeyTransformerOptions& options)
    : LanguageModel(make_token_io(token_options(checked(options)))),
      options_(options),
      positions_({options.position_rows, options.width},
                 init::normal_variance(1.0 / static_cast<double>(options.width))),
      embedding_norm_(layer_norm(options)),
      contexts_(options.heads) {
  const MemoryMaker memories(options.memories, options.width, options.layers);
  for (std::int64_t layer = 0; layer < options.layers; ++layer)
    layers_.push_back(std::make_unique<ProductKeyTransformerLayer>(options, memories.make(layer)));
  if (options.pre_norm) output_norm_.emplace(layer_norm(options));
}

Variable ProductKeyTransformer::hidden(Tape& tape, const TokenBatch& batch, ModelPast& past, ModelTrace* trace) {
  check_tokens(batch, past, 0);
  const std::int64_t streams = batch.inputs.shape()[0], block = batch.inputs.shape()[1];
  if (block > options_.position_rows)
    throw UsageError(text("model: a block must have at most ", options_.position_rows,
                          " tokens, the rows of the table of positions (model.position_rows), got ", block));
  Variable hidden;
  {
    const Scope scope("embedding");
    const Tensor& rows = constants_.index(tape.step(), {streams, block}, {streams, block},
                                          [block](std::int64_t i) { return i % block; });
    const Variable positions = embedding(tape.parameter(positions_), rows);
    hidden = dropout(embedding_norm_.forward(tokens().embed(tape, batch), positions), options_.dropout);
  }
  const WindowContext context = contexts_.of(hidden);
  hidden = through_layers(layers_.size(), std::move(hidden), trace,
                          [&](std::size_t layer, const Variable& x, const LayerTrace& seen) {
                            return layers_[layer]->forward(x, context, seen);
                          });
  const Scope scope("output");
  return output_norm_ ? output_norm_->forward(hidden) : hidden;
}

void ProductKeyTransformer::visit(Visitor& visit) {
  visit("embedding", tokens().input());
  visit("positions", positions_);
  visit("embedding_norm", embedding_norm_);
  visit("layers", layers_);
  if (output_norm_) visit("output_norm", *output_norm_);
  visit("output", tokens().output());
}

}  // namespace engram

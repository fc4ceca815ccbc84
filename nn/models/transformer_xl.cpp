#include "nn/models/transformer_xl.hpp"

#include <algorithm>
#include <array>

#include "autograd/functions/add.hpp"
#include "autograd/functions/concat.hpp"
#include "autograd/functions/dropout.hpp"
#include "autograd/functions/embedding.hpp"
#include "autograd/functions/slice.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/scope.hpp"
#include "nn/init.hpp"
#include "nn/option_rules.hpp"
#include "nn/past/segment_memory.hpp"
#include "nn/past/segment_ring.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

TokenIoOptions token_options(const TransformerXlOptions& options) {
  return {.vocabulary = options.vocabulary,
          .width = options.width,
          .embedding_width = options.embedding_width,
          .cutoffs = options.cutoffs,
          .divisor = options.divisor,
          .cluster_order = options.cluster_order,
          .tie_tables = options.tie_tables,
          .tie_projections = options.tie_projections,
          .untied_projections = options.untied_projections,
          .project_same_width = options.project_same_width,
          .tie_plain = true,
          .start = TokenStart{.table = options.table_start(),
                              .weight = options.weight_start(),
                              .projection = init::normal(options.projection_init_deviation)}};
}

StateDropout state_dropout(const TransformerXlOptions& options) { return {options.dropout, options.dropout_over_time}; }

LayerNorm layer_norm(const TransformerXlOptions& options) {
  return LayerNorm(options.width, init::normal(options.norm_init_deviation, 1), options.norm_epsilon);
}

RelativeAttentionOptions attention_options(const TransformerXlOptions& options) {
  return {.width = options.width,
          .heads = options.heads,
          .depth = options.head_depth(),
          .positions = options.positions,
          .shaw_terms = options.shaw_terms,
          .position_rows = options.position_rows,
          .own_biases = !options.tie_position_biases,
          .dropout = options.attention_dropout,
          .keep_bytes = (options.attention_memory << 20) / options.layers,
          .start = options.weight_start()};
}

AuxiliaryOptions auxiliary_options(const TransformerXlOptions& options) {
  return {.vocabulary = options.vocabulary,
          .width = options.width,
          .layers = options.layers,
          .intermediate = options.intermediate_losses,
          .second_target = options.second_target,
          .start = {options.weight_start(), init::zeros()}};
}

/// What indices of rows are for.
enum IndexUse : std::int64_t { kClamped, kShaw, kLearned, kSinusoidal };

}  // namespace

TransformerXlLayer::TransformerXlLayer(const TransformerXlOptions& options, std::unique_ptr<ProductKeyMemory> memory)
    : dropout_(state_dropout(options)),
      attention_(attention_options(options)),
      attention_residual_(layer_norm(options), options.pre_norm),
      sublayer_(options.memories.placement, std::move(memory),
                [&options] {
                  return FeedForward(options.width, options.inner, state_dropout(options),
                                     {options.weight_start(), init::zeros()});
                }),
      feed_forward_residual_(layer_norm(options), options.pre_norm) {
  if (options.positions == PositionKind::absolute_learned)
    positions_.emplace(Shape{options.position_rows, options.width}, options.weight_start());
}

Variable TransformerXlLayer::forward(const Variable& x, SegmentPast& past, const RelativePositions& positions,
                                     const Tensor& absolute_rows, const LayerTrace& trace) {
  const Variable input = positions_ ? add(x, embedding(x.tape().parameter(*positions_), absolute_rows)) : x;
  Variable hidden;
  {
    const Scope scope("attention");
    LayerNorm* const norm = attention_residual_.pre_norm();
    hidden =
        attention_residual_.after(dropout_(attention_.forward(input, norm, past, positions, trace.attention)), input);
  }
  const Scope scope("feed_forward");
  const Variable known = sublayer_.forward(feed_forward_residual_.before(hidden), trace.memory, dropout_);
  hidden = feed_forward_residual_.after(known, hidden);
  return sublayer_.behind(hidden, trace.memory);
}

void TransformerXlLayer::visit(Visitor& visit) {
  if (positions_) visit("positions", *positions_);
  visit("attention", attention_);
  visit("attention_norm", attention_residual_);
  sublayer_.visit(visit);
  visit("feed_forward_norm", feed_forward_residual_);
}

TransformerXlModel::Biases::Biases(const TransformerXlOptions& options)
    : content({options.heads * options.head_depth()}, options.weight_start()),
      position(content.shape(), content.initializer()) {}

void TransformerXlModel::Biases::visit(Visitor& visit) {
  visit("content", content);
  visit("position", position);
}

TransformerXlModel::TransformerXlModel(const TransformerXlOptions& options)
    : LanguageModel(make_token_io(token_options(checked(options)))),
      options_(options),
      context_{.memory = options.memory,
               .visibility = options.visibility,
               .start = options.memory_start,
               .clamp = options.clamp},
      dropout_(state_dropout(options)) {
  if (options.positions == PositionKind::relative && options.tie_position_biases) position_biases_.emplace(options);
  const MemoryMaker memories(options.memories, options.width, options.layers);
  for (std::int64_t layer = 0; layer < options.layers; ++layer)
    layers_.push_back(std::make_unique<TransformerXlLayer>(options, memories.make(layer)));
  if (const AuxiliaryOptions auxiliary = auxiliary_options(options); auxiliary.any()) auxiliary_.emplace(auxiliary);
}

void TransformerXlModel::set_context(const SegmentContext& context) {
  TransformerXlOptions with = options_;
  with.memory = context.memory;
  with.visibility = context.visibility;
  with.memory_start = context.start;
  with.clamp = context.clamp;
  with.check();
  context_ = context;
}

ModelPast TransformerXlModel::make_training_past(const PastPlace& place) const {
  const auto geometry = std::make_shared<SegmentGeometry>(place, context_, options_.heads);
  ModelPast past;
  for (std::int64_t layer = 0; layer < options_.layers; ++layer)
    past.push_back(std::make_unique<SegmentMemory>(geometry, options_.width));
  return past;
}

ModelPast TransformerXlModel::make_frozen_past(const PastPlace& place, std::int64_t longest_block) const {
  longest_block_ = std::max(longest_block_, longest_block);
  if (options_.pre_norm && context_.start == MemoryStart::zeros) return make_training_past(place);
  const auto geometry = std::make_shared<SegmentGeometry>(place, context_, options_.heads);
  const std::int64_t depth = attention_options(options_).key_depth();
  ModelPast past;
  for (std::int64_t layer = 0; layer < options_.layers; ++layer)
    past.push_back(std::make_unique<SegmentRing>(geometry, depth, longest_block));
  return past;
}

RelativePositions TransformerXlModel::relative_positions(Tape& tape, SegmentPast& past, std::int64_t block,
                                                         DType dtype) {
  Step& step = tape.step();
  const std::int64_t clamp = past.context().clamp, distances = past.windows(block).longest + 1;
  RelativePositions positions{.distances = distances};
  if (options_.positions == PositionKind::relative) {
    const bool clamped = clamp > 0 && clamp < distances - 1;
    const std::int64_t rows = clamped ? clamp + 1 : distances;
    positions.sinusoids = dropout_(tape.constant(constants_.sinusoids(step, rows, options_.width, dtype)));
    if (clamped) {
      positions.rows = constants_.index(step, {kClamped, distances, clamp}, {distances},
                                        [clamp](std::int64_t distance) { return std::min(distance, clamp); });
      positions.shared = clamp;
    }
    if (!position_biases_) return positions;
    positions.content_bias = tape.parameter(position_biases_->content);
    positions.position_bias = tape.parameter(position_biases_->position);
  } else if (options_.positions == PositionKind::shaw) {
    const std::int64_t rows = options_.position_rows, kept = clamp > 0 ? std::min(clamp, rows) : rows;
    positions.rows = constants_.index(step, {kShaw, distances, kept}, {distances}, [rows, kept](std::int64_t distance) {
      return rows - 1 - std::min(distance, kept - 1);
    });
    positions.shared = kept - 1;
  }
  return positions;
}

Tensor TransformerXlModel::absolute_rows(Step& step, std::int64_t streams, std::int64_t block,
                                         const SegmentContext& context) {
  const bool learned = options_.positions == PositionKind::absolute_learned;
  if (!learned && options_.positions != PositionKind::absolute_sinusoidal) return {};
  const std::int64_t rows = options_.position_rows, clamp = context.clamp > 0 ? context.clamp : block;
  // Positions count down to 0 at the last token; the rows of a table count up to its last one.
  if (learned)
    return constants_.index(step, {kLearned, streams, block}, {streams, block},
                            [rows, block](std::int64_t i) { return rows - block + i % block; });
  return constants_.index(step, {kSinusoidal, streams, block, clamp}, {streams, block},
                          [block, clamp](std::int64_t i) { return std::min(block - 1 - i % block, clamp); });
}

Variable TransformerXlModel::drop_words(const Variable& embedded, const Tensor& ids, bool begins) const {
  const Variable dropped = word_dropout(embedded, ids, options_.word_dropout);
  if (options_.word_dropout == 0 || !embedded.tape().training() || !begins) return dropped;
  // A first token that sees itself alone and whose word is dropped is a vector of zeros in every layer, while all
  // biases are 0: each layer norm then multiplies its gradient by 1 / sqrt(1e-5), beyond f32 after some 16 of them.
  return concat(std::array{slice(embedded, 1, 0, 1), slice(dropped, 1, 1, ids.shape()[1])}, 1);
}

Variable TransformerXlModel::hidden(Tape& tape, const TokenBatch& batch, ModelPast& past, ModelTrace* trace) {
  check_tokens(batch, past, layers_.size());
  const std::int64_t streams = batch.inputs.shape()[0], block = batch.inputs.shape()[1];
  if (options_.positions == PositionKind::absolute_learned && block > options_.position_rows)
    throw UsageError(text("model: positions absolute_learned has ", options_.position_rows,
                          " rows (model.position_rows), got a block of ", block, " tokens"));
  Step& step = tape.step();
  SegmentPast& memory = segment_past(*past.front());
  longest_block_ = std::max(longest_block_, block);
  const Tensor rows = absolute_rows(step, streams, block, memory.context());
  Variable hidden;
  RelativePositions positions;
  {
    const Scope scope("embedding");
    // Dropping words behind the clusters' projections, which have no biases, is dropping rows of the tables.
    const bool begins = memory.context().memory == 0 || past.front()->valid() == 0;
    hidden = drop_words(tokens().embed(tape, batch), batch.inputs, begins);
    if (options_.positions == PositionKind::absolute_sinusoidal)
      hidden = add(hidden,
                   embedding(tape.constant(constants_.sinusoids(step, block, options_.width, hidden.dtype())), rows));
    hidden = dropout_(hidden);
    positions = relative_positions(tape, memory, block, hidden.dtype());
  }
  positions.remembered = std::max<std::int64_t>(0, block - batch.fed_again);
  hidden = through_layers(layers_.size(), std::move(hidden), trace,
                          [&](std::size_t layer, const Variable& x, const LayerTrace& seen) {
                            return layers_[layer]->forward(x, segment_past(*past[layer]), positions, rows, seen);
                          });
  const Scope scope("output");
  return dropout_(hidden);
}

std::pmr::vector<Variable> TransformerXlModel::auxiliary_losses(const ModelTrace& trace, const Variable& scored,
                                                                const TokenBatch& batch, double row_weight,
                                                                double progress) {
  if (!auxiliary_) return LanguageModel::auxiliary_losses(trace, scored, batch, row_weight, progress);
  std::pmr::vector<Variable> states(trace.states.get_allocator());
  for (const Variable& state : trace.states) states.push_back(LanguageModel::scored(state, batch));
  return auxiliary_->losses(states, scored, batch, row_weight, progress);
}

std::int64_t TransformerXlModel::auxiliary_count(double progress) const {
  return auxiliary_ ? auxiliary_->count(progress) : 0;
}

std::int64_t TransformerXlModel::reach() const {
  const std::int64_t layers = options_.layers, memory = context_.memory, block = longest_block_;
  if (context_.visibility != Visibility::all)
    return layers * (memory - (context_.visibility == Visibility::last_memory ? 1 : 0));
  return layers * (memory + block - 1);
}

void TransformerXlModel::visit(Visitor& visit) {
  visit("embedding", tokens().input());
  if (position_biases_) visit("position_biases", *position_biases_);
  visit("layers", layers_);
  if (auxiliary_) visit("auxiliary", *auxiliary_);
  visit("output", tokens().output());
}

}  // namespace engram

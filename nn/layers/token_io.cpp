#include "nn/layers/token_io.hpp"

#include <algorithm>
#include <cmath>

#include "autograd/functions/cross_entropy.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/functions/linear_cross_entropy.hpp"
#include "autograd/functions/matmul.hpp"
#include "autograd/functions/reshape.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/host_copy.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/fill.hpp"
#include "core/scope.hpp"
#include "nn/layers/embedding.hpp"
#include "nn/layers/linear.hpp"

namespace engram {
namespace {

std::vector<double> on_host(const Variable& values) {
  Step& step = values.tape().step();
  std::vector<double> host = host_doubles(step.backend(), values.value());
  step.wrong_ids().check();
  return host;
}

/// Logits to ln of their softmax, row by row.
void log_softmax(std::span<double> logits, std::size_t row_length) {
  for (std::size_t begin = 0; begin < logits.size(); begin += row_length) {
    const std::span<double> row = logits.subspan(begin, row_length);
    const double largest = *std::ranges::max_element(row);
    double sum = 0;
    for (const double logit : row) sum += std::exp(logit - largest);
    const double whole = largest + std::log(sum);
    for (double& logit : row) logit -= whole;
  }
}

/// E.
std::int64_t vector_size(const TokenIoOptions& options) {
  return options.embedding_width == 0 ? options.width : options.embedding_width;
}

TokenInit token_init(const TokenIoOptions& options) {
  return {.table_init = options.table_init, .start = options.start};
}

/// Weights of the rows of a block.
Tensor row_weights(Step& step, const Variable& hidden, const TokenBatch& batch, double row_weight) {
  Tensor weights = step.empty({hidden.shape().rows()}, compute_dtype(hidden.dtype()));
  if (batch.scored)
    kernels::accumulate(step, batch.scored, row_weight, {weights, Write::set});
  else
    kernels::fill(step, weights, row_weight);
  return weights;
}

/// The last linear map: logits are weight vectors + bias.
struct OutputMap {
  Variable vectors, weight, bias;
};

/// One softmax over the whole vocabulary.
class WholeVocabulary : public TokenIo {
 public:
  explicit WholeVocabulary(const TokenIoOptions& options)
      : vocabulary_(options.vocabulary), logits_bytes_(options.logits_bytes) {}

  const VocabularyClusters* clusters() const override { return nullptr; }
  std::pmr::vector<LossPart> losses(const Variable& hidden, const TokenBatch& batch, double row_weight) override {
    Step& step = hidden.tape().step();
    const Tensor weights = row_weights(step, hidden, batch, row_weight);
    std::pmr::vector<LossPart> parts(step.objects());
    const std::int64_t row_bytes = vocabulary_ * static_cast<std::int64_t>(size_of(compute_dtype(hidden.dtype())));
    if (hidden.shape().rows() * row_bytes <= logits_bytes_) {
      CrossEntropy loss = cross_entropy(logits(hidden), batch.targets, weights);
      parts.push_back({std::move(loss.loss), std::move(loss.row_loss), std::nullopt});
      return parts;
    }
    const Scope scope("output");
    const OutputMap map = output_map(hidden);
    LinearCrossEntropy loss = linear_cross_entropy(map.vectors, map.weight, map.bias, batch.targets, weights,
                                                   std::max<std::int64_t>(1, logits_bytes_ / row_bytes));
    parts.push_back({std::move(loss.loss), std::move(loss.row_loss), std::nullopt});
    return parts;
  }
  Variable logits(const Variable& hidden) override {
    const Scope scope("output");
    const OutputMap map = output_map(hidden);
    return linear(map.vectors, map.weight, map.bias, ProductResult::summed);
  }
  std::vector<double> log_probabilities(const Variable& hidden) override {
    const Variable values = logits(hidden);
    std::vector<double> result = on_host(values);
    log_softmax(result, static_cast<std::size_t>(values.shape()[-1]));
    return result;
  }

 private:
  virtual OutputMap output_map(const Variable& hidden) = 0;
  std::int64_t vocabulary_, logits_bytes_;
};

class PlainTokens final : public WholeVocabulary {
 public:
  explicit PlainTokens(const TokenIoOptions& options)
      : WholeVocabulary(options),
        embedding_(options.vocabulary, vector_size(options),
                   options.start ? options.start->table : init::standard_normal()),
        output_(options.width, options.vocabulary,
                {token_init(options).weight(options.width), token_init(options).bias(options.width)}) {}

  Module& input() override { return embedding_; }
  Module& output() override { return output_; }
  Variable embed(Tape& tape, const TokenBatch& batch) override { return embedding_.forward(tape, batch.inputs); }

 private:
  OutputMap output_map(const Variable& hidden) override {
    Tape& tape = hidden.tape();
    return {hidden, output_.weight(tape), output_.bias(tape)};
  }

  Embedding embedding_;
  Linear output_;
};

/// Logits E P^T h + b, of E and P that are the input's or its own.
struct TiedOutput final : Module {
  TiedOutput(const TokenIoOptions& options, WordTables& input)
      : bias({options.vocabulary}, token_init(options).bias(vector_size(options))) {
    const TokenInit init = token_init(options);
    const std::int64_t size = vector_size(options);
    if (!options.tie_tables) own_table.emplace(Shape{options.vocabulary, size}, init.weight(size));
    if (input.projection && (!options.tie_projections || !options.untied_projections.empty()))
      own_projection.emplace(Shape{options.width, size}, init.projection(options.width));
    table = own_table ? &*own_table : &input.table;
    projection = own_projection ? &*own_projection : input.projection ? &*input.projection : nullptr;
  }
  OutputMap map(const Variable& hidden) {
    Tape& tape = hidden.tape();
    Variable vectors = hidden;
    if (projection != nullptr) {
      const Shape& shape = hidden.shape();
      const Variable rows = reshape(hidden, {shape.rows(), shape[-1]});
      vectors = reshape(matmul(rows, tape.parameter(*projection)), shape.with(-1, projection->shape()[1]));
    }
    return {std::move(vectors), tape.parameter(*table), tape.parameter(bias)};
  }
  void visit(Visitor& visit) override {
    if (own_table) visit("table", *own_table);
    if (own_projection) visit("projection", *own_projection);
    visit("bias", bias);
  }

  std::optional<Parameter> own_table, own_projection;  // where they are not tied
  Parameter bias;                                      // [V]
  Parameter *table = nullptr, *projection = nullptr;   // that it works with
};

class TiedTokens final : public WholeVocabulary {
 public:
  explicit TiedTokens(const TokenIoOptions& options)
      : WholeVocabulary(options),
        input_(options.vocabulary, vector_size(options), options.width, vector_size(options) != options.width,
               token_init(options)),
        output_(options, input_) {
    if (!options.scale_input) input_.factor = 1;
  }

  Module& input() override { return input_; }
  Module& output() override { return output_; }
  Variable embed(Tape& tape, const TokenBatch& batch) override { return input_.forward(tape, batch.inputs); }

 private:
  OutputMap output_map(const Variable& hidden) override { return output_.map(hidden); }

  WordTables input_;
  TiedOutput output_;  // refers to input_
};

class AdaptiveTokens final : public TokenIo {
 public:
  explicit AdaptiveTokens(const TokenIoOptions& options)
      : AdaptiveTokens(options, clusters_of(options, vector_size(options))) {}

  const VocabularyClusters* clusters() const override { return &softmax_.clusters(); }
  Module& input() override { return embedding_; }
  Module& output() override { return softmax_; }
  Variable embed(Tape& tape, const TokenBatch& batch) override {
    const Shape& shape = batch.inputs.shape();
    const Variable rows = embedding_.forward(tape, batch.inputs, sorted(batch), batch.lists);
    return reshape(rows, {shape[0], shape[1], rows.shape()[-1]});
  }
  std::pmr::vector<LossPart> losses(const Variable& hidden, const TokenBatch& batch, double row_weight) override {
    const Scope scope("output");
    return softmax_.losses(hidden, sorted(batch), batch.lists, row_weight, batch.scored);
  }
  Variable logits(const Variable&) override {
    throw Error(
        "model: a vocabulary in clusters has no logits over all of it\n  log_probabilities() puts those of the "
        "clusters "
        "together");
  }
  std::vector<double> log_probabilities(const Variable& hidden) override;

 private:
  AdaptiveTokens(const TokenIoOptions& options, const VocabularyClusters& clusters)
      : embedding_(clusters, {.width = options.own_input_width ? vector_size(options) : options.width,
                              .one_table = options.divisor == 1,
                              .project_same_width = options.project_same_width && !options.own_input_width,
                              .scale = options.scale_input,
                              .init = token_init(options)}),
        softmax_(own_output(options) ? clusters_of(options, options.width) : clusters, embedding_,
                 {.width = options.width,
                  .tie_tables = options.tie_tables,
                  .tie_projections = options.tie_projections && !own_output(options),
                  .untied_projections = options.untied_projections,
                  .own_widths = own_output(options),
                  .init = token_init(options)}) {}
  static bool own_output(const TokenIoOptions& options) { return options.own_input_width && !options.tie_tables; }
  static VocabularyClusters clusters_of(const TokenIoOptions& options, std::int64_t width) {
    return {options.cutoffs, options.vocabulary, width, options.divisor, options.cluster_order};
  }
  static const TokenPartition& sorted(const TokenBatch& batch) {
    if (batch.partition == nullptr)
      throw Error("model: for a vocabulary in clusters a block must come with its partition, got none");
    return *batch.partition;
  }

  AdaptiveEmbedding embedding_;
  AdaptiveSoftmax softmax_;  // refers to embedding_
};

std::vector<double> AdaptiveTokens::log_probabilities(const Variable& hidden) {
  const Scope scope("output");
  const VocabularyClusters& clusters = softmax_.clusters();
  const auto rows = static_cast<std::size_t>(hidden.shape().rows());
  const auto words = static_cast<std::size_t>(clusters.vocabulary());
  const auto head_size = static_cast<std::size_t>(clusters.head_size());
  std::vector<double> result(rows * words);
  std::vector<double> head = on_host(softmax_.head_logits(hidden));
  log_softmax(head, head_size);
  for (std::size_t row = 0; row < rows; ++row)
    std::copy_n(&head[row * head_size], clusters.head().size, &result[row * words]);
  for (std::size_t i = 1; i < clusters.count(); ++i) {
    const auto size = static_cast<std::size_t>(clusters[i].size), first = static_cast<std::size_t>(clusters[i].first);
    std::vector<double> tail = on_host(softmax_.tail_logits(i, hidden));
    log_softmax(tail, size);
    for (std::size_t row = 0; row < rows; ++row) {
      const double cluster = head[row * head_size + static_cast<std::size_t>(clusters.head_slot(i))];
      for (std::size_t word = 0; word < size; ++word)
        result[row * words + first + word] = cluster + tail[row * size + word];
    }
  }
  return result;
}

}  // namespace

std::unique_ptr<TokenIo> make_token_io(const TokenIoOptions& options) {
  if (options.embedding_width < 0)
    throw UsageError(text("model: the embedding's width must be at least 1, got ", options.embedding_width,
                          "\n  0 is the model's width"));
  if (options.own_input_width && (options.tie_plain || (!options.cutoffs.empty() && options.tie_tables)) &&
      vector_size(options) != options.width)
    throw UsageError(text("model: with tied tables the embedding must be as wide as the output, ", options.width,
                          ", got ", options.embedding_width));
  if (!options.cutoffs.empty()) return std::make_unique<AdaptiveTokens>(options);
  for (const std::int64_t untied : options.untied_projections)
    if (untied != 0)
      throw UsageError(text("model: untied_projections must name 0 alone without cutoffs, got ", untied));
  if (options.tie_plain) return std::make_unique<TiedTokens>(options);
  if (!options.own_input_width && vector_size(options) != options.width)
    throw UsageError(text("model: without cutoffs and tied tables the embedding must be as wide as the model, ",
                          options.width, ", got ", options.embedding_width));
  return std::make_unique<PlainTokens>(options);
}

}  // namespace engram

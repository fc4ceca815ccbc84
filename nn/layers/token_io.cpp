#include "nn/layers/token_io.hpp"

#include <algorithm>
#include <cmath>

#include "autograd/functions/cross_entropy.hpp"
#include "autograd/functions/reshape.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/kernels/fill.hpp"
#include "core/scope.hpp"
#include "nn/layers/embedding.hpp"
#include "nn/layers/linear.hpp"

namespace engram {
namespace {

std::vector<double> on_host(const Variable& values) {
  std::vector<double> read(static_cast<std::size_t>(values.shape().count()));
  dispatch_float(values.dtype(), "token output", [&]<class T>() {
    std::vector<T> host(read.size());
    values.tape().step().backend().copy(host.data(), values.value().raw(), values.value().bytes(),
                                        CopyKind::device_to_host);
    std::ranges::copy(host, read.begin());
  });
  return read;
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

class PlainTokens final : public TokenIo {
 public:
  explicit PlainTokens(const TokenIoOptions& options)
      : embedding_(options.vocabulary, options.width), output_(options.width, options.vocabulary) {}

  const VocabularyClusters* clusters() const override { return nullptr; }
  Module& input() override { return embedding_; }
  Module& output() override { return output_; }
  Variable embed(Tape& tape, const TokenBatch& batch) override { return embedding_.forward(tape, batch.inputs); }
  Variable logits(const Variable& hidden) override {
    const Scope scope("output");
    return output_.forward(hidden, ProductResult::summed);
  }
  std::pmr::vector<LossPart> losses(const Variable& hidden, const TokenBatch& batch, double row_weight) override {
    Step& step = hidden.tape().step();
    Tensor weight = step.empty({hidden.shape().rows()}, compute_dtype(hidden.dtype()));
    kernels::fill(step, weight, row_weight);
    CrossEntropy loss = cross_entropy(logits(hidden), batch.targets, weight);
    std::pmr::vector<LossPart> parts(step.objects());
    parts.push_back({std::move(loss.loss), std::move(loss.row_loss), std::nullopt});
    return parts;
  }
  std::vector<double> log_probabilities(const Variable& hidden) override {
    const Variable values = logits(hidden);
    std::vector<double> result = on_host(values);
    log_softmax(result, static_cast<std::size_t>(values.shape()[-1]));
    return result;
  }

 private:
  Embedding embedding_;
  Linear output_;
};

class AdaptiveTokens final : public TokenIo {
 public:
  explicit AdaptiveTokens(const TokenIoOptions& options)
      : embedding_(VocabularyClusters(options.cutoffs, options.vocabulary, options.width), options.width,
                   options.table_init),
        softmax_(VocabularyClusters(options.cutoffs, options.vocabulary, options.width), options.width, embedding_,
                 options.tie_tables, options.tie_projections) {}

  const VocabularyClusters* clusters() const override { return &softmax_.clusters(); }
  Module& input() override { return embedding_; }
  Module& output() override { return softmax_; }
  Variable embed(Tape& tape, const TokenBatch& batch) override {
    const Shape& shape = batch.inputs.shape();
    const Variable rows = embedding_.forward(tape, sorted(batch), batch.lists);
    return reshape(rows, {shape[0], shape[1], rows.shape()[-1]});
  }
  std::pmr::vector<LossPart> losses(const Variable& hidden, const TokenBatch& batch, double row_weight) override {
    const Scope scope("output");
    return softmax_.losses(hidden, sorted(batch), batch.lists, row_weight);
  }
  Variable logits(const Variable&) override {
    throw Error(
        "model: a vocabulary in clusters has no logits over all of it\n  log_probabilities() puts those of the "
        "clusters "
        "together");
  }
  std::vector<double> log_probabilities(const Variable& hidden) override;

 private:
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
  if (options.cutoffs.empty()) return std::make_unique<PlainTokens>(options);
  return std::make_unique<AdaptiveTokens>(options);
}

}  // namespace engram

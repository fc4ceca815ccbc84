#include "nn/layers/adaptive_softmax.hpp"

#include <algorithm>
#include <array>

#include "autograd/functions/cross_entropy.hpp"
#include "autograd/functions/embedding.hpp"
#include "autograd/functions/joined_linear.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/functions/matmul.hpp"
#include "autograd/functions/reshape.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/gather_rows.hpp"
#include "core/kernels/multiply.hpp"
#include "core/scope.hpp"

namespace engram {
namespace {

/// Weights [R, 1] of some rows, those that do not count with 0.
Tensor counting_rows(Step& step, const Tensor& weights, const Tensor& counts, const Tensor& rows) {
  Tensor count = step.empty(weights.shape(), weights.dtype()), counted = step.empty(weights.shape(), weights.dtype());
  kernels::gather_rows(step, counts.view({counts.count(), 1}), rows, 1.0, count);
  kernels::multiply(step, weights, count, {counted, Write::set});
  return counted;
}

}  // namespace

AdaptiveSoftmax::Cluster::Cluster(const VocabularyClusters::Cluster& cluster, const AdaptiveSoftmaxOptions& options,
                                  bool own_projection)
    : bias({cluster.size}, options.init.bias(cluster.width)) {
  if (!options.tie_tables) table.emplace(Shape{cluster.size, cluster.width}, options.init.weight(cluster.width));
  if (own_projection) projection.emplace(Shape{options.width, cluster.width}, options.init.projection(options.width));
}

void AdaptiveSoftmax::Cluster::visit(Visitor& visit) {
  if (table) visit("table", *table);
  if (projection) visit("projection", *projection);
  visit("bias", bias);
}

AdaptiveSoftmax::AdaptiveSoftmax(const VocabularyClusters& clusters, AdaptiveEmbedding& embedding,
                                 const AdaptiveSoftmaxOptions& options)
    : clusters_(clusters),
      embedding_(&embedding),
      own_widths_(options.own_widths),
      cluster_weight_({static_cast<std::int64_t>(clusters.tails()), clusters.head().width},
                      options.init.weight(clusters.head().width)),
      cluster_bias_({static_cast<std::int64_t>(clusters.tails())}, options.init.bias(clusters.head().width)) {
  const auto count = static_cast<std::int64_t>(clusters.count());
  for (const std::int64_t untied : options.untied_projections)
    if (untied < 0 || untied >= count)
      throw UsageError(text("model: untied_projections must name clusters from 0 to ", count - 1, ", got ", untied,
                            "\n  cluster 0 has the most frequent words"));
  for (std::size_t i = 0; i < clusters.count(); ++i) {
    const bool tied =
        options.tie_projections && std::ranges::count(options.untied_projections, static_cast<std::int64_t>(i)) == 0;
    const bool projected = options.own_widths ? clusters[i].width != options.width : embedding.projection(i) != nullptr;
    parts_.push_back(std::make_unique<Cluster>(clusters[i], options, !tied && projected));
  }
}

void AdaptiveSoftmax::visit(Visitor& visit) {
  visit("clusters", parts_);
  visit("cluster_head.weight", cluster_weight_);
  visit("cluster_head.bias", cluster_bias_);
}

Variable AdaptiveSoftmax::table(Tape& tape, std::size_t cluster) {
  auto& own = parts_[cluster]->table;
  return own ? tape.parameter(*own) : embedding_->table(tape, cluster);
}
Variable AdaptiveSoftmax::bias(Tape& tape, std::size_t cluster) { return tape.parameter(parts_[cluster]->bias); }

Variable AdaptiveSoftmax::projected(std::size_t cluster, const Variable& hidden) {
  auto& own = parts_[cluster]->projection;
  Parameter* const projection = own ? &*own : own_widths_ ? nullptr : embedding_->projection(cluster);
  const Variable rows =
      hidden.shape().rank() == 2 ? hidden : reshape(hidden, {hidden.shape().rows(), hidden.shape()[-1]});
  return projection != nullptr ? matmul(rows, rows.tape().parameter(*projection)) : rows;
}

Variable AdaptiveSoftmax::head_logits(const Variable& hidden) {
  Tape& tape = hidden.tape();
  return joined_linear(projected(0, hidden), std::array{table(tape, 0), tape.parameter(cluster_weight_)},
                       std::array{bias(tape, 0), tape.parameter(cluster_bias_)});
}

Variable AdaptiveSoftmax::tail_logits(std::size_t tail, const Variable& hidden) {
  Tape& tape = hidden.tape();
  return linear(projected(tail, hidden), table(tape, tail), bias(tape, tail), ProductResult::summed);
}

std::pmr::vector<LossPart> AdaptiveSoftmax::losses(const Variable& hidden, const TokenPartition& partition,
                                                   const Tensor& lists, double row_weight, const Tensor& counts) {
  Tape& tape = hidden.tape();
  Step& step = tape.step();
  const std::int64_t rows = hidden.shape().rows();
  if (partition.count() != clusters_.count() || partition.head_targets().size != rows)
    throw Error(text("adaptive softmax: the block must be sorted into ", clusters_.count(), " clusters, with ", rows,
                     " targets, got ", partition.count(), " and ", partition.head_targets().size));
  const DType dtype = compute_dtype(hidden.dtype());
  const Variable states = reshape(hidden, {rows, hidden.shape()[-1]});
  std::pmr::vector<LossPart> parts(step.objects());

  // 0 and the weight: a row of padding counts nothing.
  Tensor weights = step.empty({2, 1}, dtype), none = weights.rows(0, 1), whole = weights.rows(1, 2);
  kernels::fill(step, none, 0);
  kernels::fill(step, whole, row_weight);
  for (std::size_t i = 1; i < clusters_.count(); ++i) {
    const TokenPartition::Cluster& tail = partition[i];
    if (tail.rows.size == 0) continue;
    const std::string name = text("clusters.", i);
    const Scope scope(name);
    const Variable selected = embedding(states, list_on_device(lists, tail.rows));
    Tensor weight = step.empty({tail.rows.size, 1}, dtype);
    kernels::gather_rows(step, weights, list_on_device(lists, tail.counted), 1.0, weight);
    if (counts) weight = counting_rows(step, weight, counts, list_on_device(lists, tail.rows));
    CrossEntropy loss =
        cross_entropy(tail_logits(i, selected), list_on_device(lists, tail.targets), weight.view({tail.rows.size}));
    parts.push_back({std::move(loss.loss), std::move(loss.row_loss), partition.list({tail.rows.begin, tail.scored})});
  }
  Tensor weight = step.empty({rows}, dtype);
  if (counts)
    kernels::accumulate(step, counts, row_weight, {weight, Write::set});
  else
    kernels::fill(step, weight, row_weight);
  CrossEntropy loss = cross_entropy(head_logits(states), list_on_device(lists, partition.head_targets()), weight);
  parts.push_back({std::move(loss.loss), std::move(loss.row_loss), std::nullopt});
  return parts;
}

}  // namespace engram

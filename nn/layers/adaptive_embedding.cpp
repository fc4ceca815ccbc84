#include "nn/layers/adaptive_embedding.hpp"

#include <cmath>

#include "autograd/functions/concat.hpp"
#include "autograd/functions/embedding.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"

namespace engram {

WordTables::WordTables(std::int64_t words, std::int64_t size, std::int64_t width, bool projected, const TokenInit& init)
    : table({words, size}, init.table(size)), factor(std::sqrt(static_cast<double>(width))) {
  if (projected) projection.emplace(Shape{width, size}, init.projection(size));
}

Variable WordTables::forward(Tape& tape, const Tensor& index) {
  const Variable vectors = embedding(tape.parameter(table), index, factor);
  return projection ? linear(vectors, tape.parameter(*projection)) : vectors;
}

void WordTables::visit(Visitor& visit) {
  visit("table", table);
  if (projection) visit("projection", *projection);
}

AdaptiveEmbedding::AdaptiveEmbedding(const VocabularyClusters& clusters, const AdaptiveEmbeddingOptions& options)
    : clusters_(clusters) {
  const std::int64_t width = options.width;
  if (options.one_table) {
    const std::int64_t size = clusters.head().width;
    one_.emplace(clusters.vocabulary(), size, width, size != width, options.init);
    if (!options.scale) one_->factor = 1;
    return;
  }
  for (std::size_t i = 0; i < clusters.count(); ++i) {
    const bool projected = clusters[i].width != width || options.project_same_width;
    parts_.push_back(std::make_unique<WordTables>(clusters[i].size, clusters[i].width, width, projected, options.init));
    if (!options.scale) parts_.back()->factor = 1;
  }
}

Variable AdaptiveEmbedding::forward(Tape& tape, const Tensor& inputs, const TokenPartition& partition,
                                    const Tensor& lists) {
  if (one_) return one_->forward(tape, inputs.view({inputs.count()}));
  if (partition.count() != parts_.size())
    throw Error(text("adaptive embedding: the block must be sorted into ", parts_.size(), " clusters, got ",
                     partition.count()));
  std::pmr::vector<Variable> parts(tape.step().objects());
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const TokenPartition::List ids = partition[i].inputs;
    if (ids.size > 0) parts.push_back(parts_[i]->forward(tape, list_on_device(lists, ids)));
  }
  // Back into the order of the text.
  const Variable joined = parts.size() == 1 ? parts.front() : concat(parts, 0);
  parts.clear();
  return embedding(joined, list_on_device(lists, partition.places()));
}

Variable AdaptiveEmbedding::table(Tape& tape, std::size_t cluster) {
  if (!one_) return tape.parameter(parts_[cluster]->table);
  const VocabularyClusters::Cluster& words = clusters_[cluster];
  return tape.parameter(one_->table, words.first, words.first + words.size);
}

Parameter* AdaptiveEmbedding::projection(std::size_t cluster) {
  auto& projection = one_ ? one_->projection : parts_[cluster]->projection;
  return projection ? &*projection : nullptr;
}

void AdaptiveEmbedding::visit(Visitor& visit) {
  if (one_)
    one_->visit(visit);
  else
    visit("clusters", parts_);
}

}  // namespace engram

#include "nn/layers/adaptive_embedding.hpp"

#include <cmath>

#include "autograd/functions/concat.hpp"
#include "autograd/functions/embedding.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "nn/init.hpp"

namespace engram {

ClusterTables::ClusterTables(const VocabularyClusters::Cluster& cluster, std::int64_t width, TableInit init)
    : table({cluster.size, cluster.width},
            init::normal_variance(init == TableInit::scaled ? 1.0 / static_cast<double>(cluster.width) : 1.0)),
      projection({width, cluster.width}, init::uniform_fan_in(cluster.width)) {}

void ClusterTables::visit(Visitor& visit) {
  visit("table", table);
  visit("projection", projection);
}

AdaptiveEmbedding::AdaptiveEmbedding(const VocabularyClusters& clusters, std::int64_t width, TableInit init)
    : factor_(std::sqrt(static_cast<double>(width))) {
  for (std::size_t i = 0; i < clusters.count(); ++i)
    clusters_.push_back(std::make_unique<ClusterTables>(clusters[i], width, init));
}

Variable AdaptiveEmbedding::forward(Tape& tape, const TokenPartition& partition, const Tensor& lists) {
  if (partition.count() != clusters_.size())
    throw Error(text("adaptive embedding: the block must be sorted into ", clusters_.size(), " clusters, got ",
                     partition.count()));
  std::pmr::vector<Variable> parts(tape.step().objects());
  for (std::size_t i = 0; i < clusters_.size(); ++i) {
    const TokenPartition::List ids = partition[i].inputs;
    if (ids.size == 0) continue;
    const Variable vectors = embedding(tape.parameter(clusters_[i]->table), list_on_device(lists, ids), factor_);
    parts.push_back(linear(vectors, tape.parameter(clusters_[i]->projection)));
  }
  // Back into the order of the text.
  const Variable joined = parts.size() == 1 ? parts.front() : concat(parts, 0);
  parts.clear();
  return embedding(joined, list_on_device(lists, partition.places()));
}

void AdaptiveEmbedding::visit(Visitor& visit) { visit("clusters", clusters_); }

}  // namespace engram

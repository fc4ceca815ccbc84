#pragma once
/// Adaptive input: rare words have shorter vectors, which a projection per cluster brings to the model's width. Baevski
/// and Auli (2019), section 3; spec of the all-attention family, section 4.

#include <memory>
#include <vector>

#include "autograd/variable.hpp"
#include "nn/layers/token_partition.hpp"
#include "nn/layers/vocabulary_clusters.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

/// How the entries of tables start. The first losses of `unit`, the released models' way, are far above ln V when the
/// tables are tied: 50 to 110 nats at width 512, which a long training soon forgets.
enum class TableInit : std::uint8_t {
  unit,   ///< N(0, 1)
  scaled  ///< N(0, 1 / d_i): first losses near ln V
};

/// The vectors of a cluster's words and the way from and to the model's width. Entries of the projection start uniform
/// in +-1/sqrt(d_i).
struct ClusterTables final : Module {
  ClusterTables(const VocabularyClusters::Cluster& cluster, std::int64_t width, TableInit init);
  void visit(Visitor& visit) override;

  Parameter table;       ///< E_i [n_i, d_i]
  Parameter projection;  ///< P_i [d, d_i]
};

class AdaptiveEmbedding final : public Module {
 public:
  /// `width`: d, of the model.
  AdaptiveEmbedding(const VocabularyClusters& clusters, std::int64_t width, TableInit init = TableInit::unit);

  /// sqrt(d) P_i E_i[w - c_i] for every input w. `lists`: the values of the partition, on the device. Result: [R, d].
  Variable forward(Tape& tape, const TokenPartition& partition, const Tensor& lists);
  ClusterTables& cluster(std::size_t index) { return *clusters_[index]; }
  void visit(Visitor& visit) override;

 private:
  double factor_;  // sqrt(d)
  std::vector<std::unique_ptr<ClusterTables>> clusters_;
};

/// A list of a partition whose values are on the device. They share their memory.
inline Tensor list_on_device(const Tensor& lists, TokenPartition::List list) {
  return lists.rows(list.begin, list.begin + list.size);
}

}  // namespace engram

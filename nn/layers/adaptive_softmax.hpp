#pragma once
/// Adaptive softmax: a first softmax over the frequent words and one slot for each cluster of rarer ones, and within a
/// cluster a softmax of its own, which only its words need. Grave et al. (2017); tied to the input as by Baevski and
/// Auli (2019); [all-attention 4], and of Transformer-XL, section 3:
///   head:    logits = (E_0 s + b_0, W_cl s + b_cl), s = P_0^T h
///   tail i:  logits = E_i (P_i^T h) + b_i
/// where a cluster without projection takes h itself;
///   -log p(w) = the head's loss of w, or of its cluster's slot plus the tail's loss of w

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "autograd/variable.hpp"
#include "nn/layers/adaptive_embedding.hpp"
#include "nn/layers/linear.hpp"
#include "nn/layers/token_partition.hpp"

namespace engram {

/// Losses of some rows of a block.
struct LossPart {
  Variable loss;    ///< [1]: the weighted sum; a root of backward
  Tensor row_loss;  ///< nats, not weighted; at least as many as rows
  /// Which rows, on the host; without values: all of them. A row's loss is the sum over all parts that have it.
  std::optional<std::span<const std::int32_t>> rows;
};

/// What of the output is the input's, and how the rest starts.
struct AdaptiveSoftmaxOptions {
  std::int64_t width = 0;                             ///< d, of the model
  bool tie_tables = true;                             ///< E_i are those of the embedding
  bool tie_projections = true;                        ///< P_i are
  std::vector<std::int64_t> untied_projections = {};  ///< clusters whose P_i is not all the same
  /// Nothing is the input's, whose vectors may have other widths: clusters whose vectors are not d long have
  /// projections, whatever the embedding has. For models without anything tied.
  bool own_widths = false;
  TokenInit init = {};  ///< own tables and cluster slots: as its weights
};

/// Parameters: clusters.i.bias, cluster_head.weight, cluster_head.bias; where they are not tied, clusters.i.table and
/// clusters.i.projection. Clusters that have no projection in the embedding have none here, but with own_widths.
class AdaptiveSoftmax final : public Module {
 public:
  /// `embedding` must outlive it. Throws UsageError when an untied projection is of no cluster.
  AdaptiveSoftmax(const VocabularyClusters& clusters, AdaptiveEmbedding& embedding,
                  const AdaptiveSoftmaxOptions& options);

  /// The losses of the block's targets, each row with the same weight: the head's and, for every tail cluster that has
  /// a target, the tail's. hidden: [..., d], the block's scored rows. counts: [R'] of the losses' dtype, 1 where a row
  /// counts, 0 where it has no weight; absent: all count. `partition` must stay as long as the result.
  std::pmr::vector<LossPart> losses(const Variable& hidden, const TokenPartition& partition, const Tensor& lists,
                                    double row_weight, const Tensor& counts = {});
  /// Logits of the head [R, n_0 + K] or of a tail [R, n_i] for hidden [..., d] of R rows, f32 beside bf16.
  Variable head_logits(const Variable& hidden);
  Variable tail_logits(std::size_t tail, const Variable& hidden);
  const VocabularyClusters& clusters() const { return clusters_; }
  void visit(Visitor& visit) override;

 private:
  struct Cluster final : Module {
    Cluster(const VocabularyClusters::Cluster& cluster, const AdaptiveSoftmaxOptions& options, bool own_projection);
    void visit(Visitor& visit) override;
    std::optional<Parameter> table, projection;  // where they are not tied
    Parameter bias;                              // b_i [n_i]
  };
  Variable table(Tape& tape, std::size_t cluster);
  Variable bias(Tape& tape, std::size_t cluster);
  /// P_i^T h, or h without projection: [..., d] -> [R, E_i].
  Variable projected(std::size_t cluster, const Variable& hidden);

  VocabularyClusters clusters_;
  AdaptiveEmbedding* embedding_;
  bool own_widths_;
  std::vector<std::unique_ptr<Cluster>> parts_;
  Parameter cluster_weight_;  // W_cl [K, E_0]
  Parameter cluster_bias_;    // b_cl [K]
};

}  // namespace engram

#pragma once
/// Adaptive softmax: a first softmax over the frequent words and one slot for each cluster of rarer ones, and within a
/// cluster a softmax of its own, which only its words need. Grave et al. (2017); tied to the input as by Baevski and
/// Auli (2019); spec of the all-attention family, section 4:
///   head:    logits = (E_0 s + b_0, W_cl s + b_cl), s = P_0^T h
///   tail i:  logits = E_i (P_i^T h) + b_i
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

class AdaptiveSoftmax final : public Module {
 public:
  /// `tied_tables`, `tied_projections`: E_i or P_i are those of `embedding`, which must outlive it. Own ones start as
  /// weights of linear maps do, uniform in +-1/sqrt(inputs).
  AdaptiveSoftmax(const VocabularyClusters& clusters, std::int64_t width, AdaptiveEmbedding& embedding,
                  bool tied_tables, bool tied_projections);

  /// The losses of the block's targets, each row with the same weight: the head's and, for every tail cluster that has
  /// a target, the tail's. hidden: [..., d], all rows of the block. `partition` must stay as long as the result.
  std::pmr::vector<LossPart> losses(const Variable& hidden, const TokenPartition& partition, const Tensor& lists,
                                    double row_weight);
  /// Logits of the head [..., n_0 + K] or of a tail [..., n_i], f32 beside bf16.
  Variable head_logits(const Variable& hidden);
  Variable tail_logits(std::size_t tail, const Variable& hidden);
  const VocabularyClusters& clusters() const { return clusters_; }
  void visit(Visitor& visit) override;

 private:
  struct Cluster final : Module {
    Cluster(const VocabularyClusters::Cluster& cluster, std::int64_t width, bool own_table, bool own_projection);
    void visit(Visitor& visit) override;
    std::optional<Parameter> table, projection;  // where they are not tied
    Parameter bias;                              // b_i [n_i]
  };
  Variable table(Tape& tape, std::size_t cluster);
  Variable bias(Tape& tape, std::size_t cluster);
  /// P_i^T h: [..., d] -> [R, d_i].
  Variable projected(std::size_t cluster, const Variable& hidden);

  VocabularyClusters clusters_;
  AdaptiveEmbedding* embedding_;
  std::vector<std::unique_ptr<Cluster>> parts_;
  Parameter cluster_weight_;  // W_cl [K, d]
  Parameter cluster_bias_;    // b_cl [K]
};

}  // namespace engram

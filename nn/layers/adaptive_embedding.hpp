#pragma once
/// Adaptive input: rare words have shorter vectors, which a projection per cluster brings to the model's width. Baevski
/// and Auli (2019), section 3; [all-attention 4], and of Transformer-XL, sections 1.1 and 3.

#include <memory>
#include <optional>
#include <vector>

#include "autograd/variable.hpp"
#include "nn/layers/token_init.hpp"
#include "nn/layers/token_partition.hpp"
#include "nn/layers/vocabulary_clusters.hpp"
#include "nn/module.hpp"
#include "nn/visitor.hpp"

namespace engram {

/// Vectors of words and the way from and to the model's width: of one cluster, or of a whole vocabulary.
struct WordTables final : Module {
  /// `width`: d. Without `projected` there is no projection, and `size` must be d.
  WordTables(std::int64_t words, std::int64_t size, std::int64_t width, bool projected, const TokenInit& init);
  /// factor P E[w] for every w of `index`: [...] i32 -> [..., d].
  Variable forward(Tape& tape, const Tensor& index);
  void visit(Visitor& visit) override;

  Parameter table;                      ///< E_i [n_i, E_i]
  std::optional<Parameter> projection;  ///< P_i [d, E_i]
  double factor;                        ///< sqrt(d), unless changed
};

struct AdaptiveEmbeddingOptions {
  std::int64_t width = 0;          ///< d, of the model
  bool one_table = false;          ///< of all clusters, whose vectors must have one width: a divisor of 1
  bool project_same_width = true;  ///< even vectors that are d long have projections; of one table they never have
  bool scale = true;               ///< the input is sqrt(d) times the vectors; without it, the vectors as they are
  TokenInit init = {};
};

/// Parameters: clusters.i.table and clusters.i.projection; of one table: table and projection.
class AdaptiveEmbedding final : public Module {
 public:
  AdaptiveEmbedding(const VocabularyClusters& clusters, const AdaptiveEmbeddingOptions& options);

  /// sqrt(d) P_i E_i[w - c_i] for every input w; without `scale` P_i E_i[w - c_i]. inputs: [...] i32 of R tokens;
  /// `lists`: the values of their partition, on the device. Result: [R, d].
  Variable forward(Tape& tape, const Tensor& inputs, const TokenPartition& partition, const Tensor& lists);
  /// E_i: [n_i, E_i]. It shares the memory of one table.
  Variable table(Tape& tape, std::size_t cluster);
  /// P_i [d, E_i]; nullptr: its vectors are as long as the model is wide, and taken as they are.
  Parameter* projection(std::size_t cluster);
  void visit(Visitor& visit) override;

 private:
  VocabularyClusters clusters_;
  std::optional<WordTables> one_;                   // of all clusters, or
  std::vector<std::unique_ptr<WordTables>> parts_;  // of each
};

/// A list of a partition whose values are on the device. They share their memory.
inline Tensor list_on_device(const Tensor& lists, TokenPartition::List list) {
  return lists.rows(list.begin, list.begin + list.size);
}

}  // namespace engram

#pragma once
/// Both ends of a language model: tokens in, losses and probabilities of the next tokens out. Either one table of
/// vectors and one linear map over the whole vocabulary, or clusters of it with adaptive input and softmax.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "nn/layers/adaptive_softmax.hpp"
#include "nn/layers/token_partition.hpp"

namespace engram {

/// A block of tokens on the device.
struct TokenBatch {
  Tensor inputs;  ///< [B, M] i32
  /// [B M'] i32, of the last M' of every stream's positions, usually all M; absent where no losses are wanted.
  Tensor targets;
  /// For a vocabulary in clusters: the block sorted into them, and the values of that on the device.
  const TokenPartition* partition = nullptr;
  Tensor lists;
  /// Of models with segments ([transformer-xl 1.7, 1.9]). Leading columns that are context only:
  /// they are fed, and have no loss.
  std::int64_t context = 0;
  /// Trailing columns that the next block is fed again, as its context: memories do not take them in, so that no
  /// position is seen twice. In a stream without end it equals `context`, but the first block has no context yet.
  std::int64_t fed_again = 0;
  /// Of models that know where their texts begin: [B, M] i32, how many positions of its own text are before each, over
  /// all blocks; 0 at the start of a text. Absent: every stream is one text, which began where its past is empty.
  Tensor preceding;
  /// [B M'] of the losses' dtype: 1 where the target counts, 0 where it does not; absent: all count.
  Tensor scored;
};

struct TokenIoOptions {
  std::int64_t vocabulary = 0;        ///< V
  std::int64_t width = 0;             ///< d
  std::int64_t embedding_width = 0;   ///< E, of the vectors of the most frequent words; 0: d
  std::vector<std::int64_t> cutoffs;  ///< of the clusters; empty: none
  std::int64_t divisor = 4;           ///< clusters: vectors of cluster i are E / divisor^i long; 1: one table for all
  ClusterOrder cluster_order = ClusterOrder::reversed;  ///< of the clusters' slots in the head
  bool tie_tables = true;                               ///< clusters, tie_plain: E_i is one tensor for input and output
  bool tie_projections = true;                          ///< clusters, tie_plain: P_i is
  std::vector<std::int64_t> untied_projections;         ///< clusters whose P_i is not all the same
  /// Clusters with a divisor above 1: even vectors that are d long have projections.
  bool project_same_width = true;
  /// Without clusters: the vectors times sqrt(d) are the input, through a projection where E is not d, and what can be
  /// tied is. Without it both ends have weights of their own, and vectors are d long.
  bool tie_plain = false;
  /// Without tie_plain: the inputs' vectors are E long, whatever d is. In clusters those of cluster i are
  /// E / divisor^i long at the input and, where tables are not tied, d / divisor^i long at the output; those that are
  /// not as wide as the end that they are at have projections there.
  bool own_input_width = false;
  bool scale_input = true;  ///< clusters, tie_plain: without it the input is the vectors as they are, not times sqrt(d)
  TableInit table_init = TableInit::unit;
  std::optional<TokenStart> start;  ///< instead of table_init and uniform weights
  /// Without clusters: bytes of logits above which losses are computed in blocks of rows, whose logits take no more
  /// (at least one row).
  std::int64_t logits_bytes = std::int64_t{256} << 20;
};

class TokenIo {
 public:
  virtual ~TokenIo() = default;
  /// nullptr: not in clusters, and a batch needs no partition.
  virtual const VocabularyClusters* clusters() const = 0;
  /// The parameters of either end, for Module::visit.
  virtual Module& input() = 0;
  virtual Module& output() = 0;

  /// The inputs' vectors [B, M, d], or [B, M, E] with own_input_width.
  virtual Variable embed(Tape& tape, const TokenBatch& batch) = 0;
  /// The losses of all targets, each row with this weight (those that do not count with 0), as one part or several; at
  /// most most_losses(). hidden: [B, M', d], of the positions that have targets. `batch.partition` must stay as long as
  /// the result.
  virtual std::pmr::vector<LossPart> losses(const Variable& hidden, const TokenBatch& batch, double row_weight) = 0;
  std::int64_t most_losses() const { return clusters() ? static_cast<std::int64_t>(clusters()->count()) : 1; }
  /// Logits [..., V] of hidden [..., d]. Throws Error where the vocabulary is in clusters: use log_probabilities().
  virtual Variable logits(const Variable& hidden) = 0;
  /// ln p of every word after every row of hidden [..., d], on the host: [R, V]. Waits for the device.
  virtual std::vector<double> log_probabilities(const Variable& hidden) = 0;
};

/// Parameters: of AdaptiveEmbedding and AdaptiveSoftmax for clusters; embedding.weight, output.weight and output.bias
/// without; with tie_plain embedding.table and output.bias, and where they are needed embedding.projection,
/// output.table and output.projection. Throws UsageError when cut-offs or other options do not fit.
std::unique_ptr<TokenIo> make_token_io(const TokenIoOptions& options);

}  // namespace engram

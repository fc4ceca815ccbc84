#pragma once
/// What each of a run's ranks keeps in memory from the first step to the last, whatever it reads: counted from names
/// and shapes alone, with the buckets and parts that the ranks would have. Where a mean of the weights may begin it is
/// counted as if it had.

#include <cstdint>
#include <vector>

#include "autograd/parameter_store.hpp"
#include "core/activation_precision.hpp"
#include "nn/optim/optimizer.hpp"

namespace engram {

/// What memory and messages of ranks depend on beside the parameters of the model and how many ranks there are. Each
/// rank has an equal share of the pieces, of which there is at least one.
struct RankSetting {
  OptimizerKind optimizer = OptimizerKind::adagrad;
  TableOptimizerOptions tables = {};
  ActivationPrecision activations = ActivationPrecision::f32;
  std::int64_t batch = 1;           ///< rows of a step
  std::int64_t row_tokens = 1;      ///< of each, that are read
  std::int64_t pieces = 1;          ///< of a batch, on all ranks
  std::int64_t losses = 1;          ///< of a piece: of clusters, or one
  std::int64_t lookups = 0;         ///< of tables' rows, in a piece
  std::int64_t lookup_reads = 0;    ///< rows that each reads for a token
  std::int64_t lookup_numbers = 0;  ///< in what it makes of them
  bool averages = false;            ///< whether a mean of the weights may be kept
};

/// Bytes, of f32 parameters. Caches of hidden states and what a step takes come on top.
struct RankMemory {
  std::int64_t values = 0;        ///< of the groups' blocks, padding with them
  std::int64_t gradients = 0;     ///< of the same
  std::int64_t averages = 0;      ///< means of the values, and room for those while the means are in their place
  std::int64_t rounded = 0;       ///< bf16 copies for steps with bf16 activations
  std::int64_t state = 0;         ///< the optimiser's, of the rank's part of every bucket
  std::int64_t norms = 0;         ///< sums of squares, of chunks and of whole entries, and factors of clips
  std::int64_t exchange = 0;      ///< what the other ranks' gradients arrive in
  std::int64_t tables = 0;        ///< of values whose rows are looked up
  std::int64_t table_state = 0;   ///< their optimiser's
  std::int64_t buffers = 0;       ///< which nothing trains
  std::int64_t kept_buffers = 0;  ///< what they were before a step
  std::int64_t sums = 0;          ///< copies of gradients and buffers that sums over a rank's pieces keep

  /// Of these what comes from the store's allocator: all but the last two.
  std::int64_t in_store() const;
  /// At most 2^63 - 1, which stands for all that is more, as in all of these numbers.
  std::int64_t total() const;
};

/// Of every rank, in their order. `store`: the model's parameters, with memory or without.
std::vector<RankMemory> rank_memory(const RankSetting& setting, const ParameterStore& store, int ranks);
/// That of the rank that has most.
RankMemory largest_rank_memory(const RankSetting& setting, const ParameterStore& store, int ranks);

}  // namespace engram

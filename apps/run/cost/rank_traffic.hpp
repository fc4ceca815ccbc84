#pragma once
/// What the ranks of a run tell each other in a training step, in bytes, and how long that takes on a link of some
/// speed: a prediction, whose formula is in docs/reference/several-processes-cost.md.

#include <cstdint>
#include <vector>

#include "apps/run/cost/rank_memory.hpp"
#include "autograd/parameter_store.hpp"

namespace engram {

/// Of a bucket of gradients (nn/optim/shards.hpp).
struct BucketTraffic {
  std::int64_t exchanged = 0;  ///< bytes of gradients that the rank sends: all but its own part
  std::int64_t gathered = 0;   ///< bytes of values: its own part, to all others
  /// When nothing is added to it any more: the share of a backward pass, taking each layer for as long as it has
  /// parameters, and everything before the layers for final at the end.
  double final_after = 1;
};

/// What one rank sends in a step.
struct RankTraffic {
  std::vector<BucketTraffic> buckets;  ///< in the order in which they become final
  std::int64_t squares = 0;            ///< bytes: sums of squares that norms are made of
  std::int64_t rows = 0;               ///< bytes: gradients of tables' rows
  std::int64_t buffers = 0;            ///< bytes: running statistics
  std::int64_t losses = 0;             ///< bytes
  std::int64_t stop = 0;               ///< bytes: whether to stop, which a run asks after every step
  std::int64_t messages = 0;           ///< to one rank each
  std::int64_t rounds = 0;             ///< of those that leave together, what is waited for before more is done

  std::int64_t exchanged() const;
  std::int64_t gathered() const;
  std::int64_t total() const { return exchanged() + gathered() + squares + rows + buffers + losses + stop; }
};

/// Of rank `rank`. `store`: the model's parameters, with memory or without. All ranks read all tokens of
/// their rows.
RankTraffic rank_traffic(const RankSetting& setting, const ParameterStore& store, int ranks, int rank);

/// What each rank is connected by, in both directions at once.
struct RankLink {
  double bytes_per_second = 0;
  double latency_seconds = 0;  ///< until the first byte of something arrives
};

struct StepPrediction {
  double exchange_seconds = 0;  ///< of all gradients on the link
  double exposed_seconds = 0;   ///< of those, after the backward pass
  double gather_seconds = 0;    ///< of everything else, which nothing hides
  double step_seconds = 0;
  double efficiency = 0;  ///< against so many times one rank

  double hidden() const { return exchange_seconds > 0 ? 1 - exposed_seconds / exchange_seconds : 1; }
};

/// Seconds on the link alone: exchange_seconds and gather_seconds.
StepPrediction predict_link(const RankTraffic& traffic, const RankLink& link);
/// `one_rank_seconds`: of a step of one rank, which computes all `pieces` pieces; above 0.
StepPrediction predict_step(const RankTraffic& traffic, const RankLink& link, double one_rank_seconds, int ranks,
                            std::int64_t pieces);

}  // namespace engram

#include "apps/run/training/rank_split.hpp"

#include <bit>

#include "core/error.hpp"

namespace engram {

std::int64_t split_for_ranks(const RunConfig& config, int ranks) {
  const std::int64_t asked = config.training.split, batch = config.training.batch;
  if (ranks == 1) return asked;
  const std::int64_t pieces = (asked + ranks - 1) / ranks;  // of a rank
  const std::int64_t split = ranks * static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(pieces)));
  if (split > batch || batch % split != 0)
    throw UsageError(text("training: batch must be a multiple of ", split, " for ", ranks, " ranks, got ", batch,
                          "\n  all have as many pieces of it, a power of two, and together at least the training.split "
                          "of ",
                          asked));
  return split;
}

}  // namespace engram

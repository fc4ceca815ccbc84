#pragma once
/// A text read by a model that shows what every layer did: the part that all studies of attention have in common.

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "apps/run/model/placed_model.hpp"

namespace engram {

struct TracedReading {
  std::int64_t block = 1;              ///< tokens that are read at once, at most
  std::optional<ScoreTerm> term = {};  ///< see ModelTrace
};
/// Called for every block while its tensors live: results are kept (ModelTrace::keep_results). `first`: the place of
/// its first token in the text; `count`: its tokens.
using TraceFound = std::function<void(const ModelTrace& trace, std::int64_t first, std::int64_t count)>;

/// Reads the tokens from the start of a stream as evaluation does, without dropout and with the statistics that batch
/// norms have learned; its past is carried from block to block.
void read_traced(const PlacedModel& placed, std::span<const std::int32_t> tokens, const TracedReading& reading,
                 const TraceFound& found);

}  // namespace engram

#include "apps/studies/bench/block_timer.hpp"

#include <utility>

#include "autograd/tape.hpp"
#include "core/stopwatch.hpp"

namespace engram {

BlockTimer::BlockTimer(const BenchModel& bench, const PlacedModel& placed, ModelPast past, std::int64_t streams,
                       std::int64_t block)
    : placed_(placed),
      in_clusters_(!bench.config.model.cutoffs().empty()),
      past_(std::move(past)),
      block_(block),
      tokens_(bench_tokens(streams * block, bench.config.model, 0)) {
  for (std::int64_t seen = 0; seen <= bench.longest_past(); seen += block) run();
}

double BlockTimer::run() {
  const Stopwatch watch;
  placed_.runtime.in_step([&](Step& step) {
    const TokenBatch batch = input_.batch_of({.inputs = tokens_, .targets = tokens_, .length = block_}, placed_);
    Tape tape(step, Tape::Mode::inference);
    TokenIo& tokens = placed_.model.tokens();
    const Variable hidden = placed_.model.hidden(tape, batch, past_);
    if (!in_clusters_)
      tokens.logits(hidden);
    else if (block_ == 1)
      tokens.log_probabilities(hidden);
    else
      tokens.losses(hidden, batch, 1);
    placed_.runtime.backend().synchronize();
  });
  return watch.seconds();
}

}  // namespace engram

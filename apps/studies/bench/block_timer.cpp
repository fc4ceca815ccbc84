#include "apps/studies/bench/block_timer.hpp"

#include <span>
#include <utility>

#include "autograd/tape.hpp"
#include "core/stopwatch.hpp"

namespace engram {

BlockTimer::BlockTimer(const BenchModel& bench, const PlacedModel& placed, ModelPast past, std::int64_t streams,
                       std::int64_t block)
    : placed_(placed),
      in_clusters_(!bench.config.model.cutoffs().empty()),
      past_(std::move(past)),
      streams_(streams),
      block_(block),
      tokens_(bench_tokens(streams * block, bench.config.model, 0)) {
  for (std::int64_t seen = 0; seen <= bench.longest_past(); seen += block) run();
}

double BlockTimer::run(std::int64_t block) {
  const std::span<const std::int32_t> tokens = std::span(tokens_).first(static_cast<std::size_t>(streams_ * block));
  const Stopwatch watch;
  placed_.runtime.in_step([&](Step& step) {
    const TokenBatch batch = input_.batch_of({.inputs = tokens, .targets = tokens, .length = block}, placed_);
    Tape tape(step, Tape::Mode::inference);
    TokenIo& io = placed_.model.tokens();
    const Variable hidden = placed_.model.hidden(tape, batch, past_);
    if (!in_clusters_)
      io.logits(hidden);
    else if (block == 1)
      io.log_probabilities(hidden);
    else
      io.losses(hidden, batch, 1);
    placed_.runtime.backend().synchronize();
  });
  return watch.seconds();
}

}  // namespace engram

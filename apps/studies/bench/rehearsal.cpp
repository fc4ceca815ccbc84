#include "apps/studies/bench/rehearsal.hpp"

#include <algorithm>
#include <span>

#include "apps/run/model/block_tensors.hpp"
#include "autograd/tape.hpp"
#include "core/stopwatch.hpp"

namespace engram {

Rehearsal::Rehearsal(const BenchCase& bench, Runtime& runtime)
    : config_(bench.config), runtime_(runtime), rehearsed_(bench, runtime.backend(), &runtime.ranks()) {
  config_.schedule.rate = 0;
  trainer_ = std::make_unique<Trainer>(config_, *rehearsed_.model, rehearsed_.store, runtime);
  const TrainingOptions& training = config_.training;
  block_.rows = static_cast<int>(training.batch);
  block_.length = static_cast<int>(training.block + training.extension);
  block_.context = block_.fed_again = static_cast<int>(training.extension);
  block_.scored_count = training.batch * training.block;
  block_.scored.assign(static_cast<std::size_t>(block_.scored_count), 1);
  block_.inputs = bench_tokens(training.batch * block_.length, config_.model, 0);
  block_.targets = bench_tokens(block_.scored_count, config_.model, 1);
}

void Rehearsal::fill_caches() {
  const PlacedModel placed = rehearsed_.placed(runtime_);
  const std::int64_t streams = config_.training.batch / config_.training.split;
  const BlockTokens first_piece{
      .inputs = std::span(block_.inputs).first(static_cast<std::size_t>(streams * block_.length)),
      .targets = {},
      .length = block_.length,
      .fed_again = block_.fed_again};
  BlockTensors tokens;
  for (std::int64_t seen = 0; seen < rehearsed_.longest_past(); seen += config_.training.block)
    for (ModelPast& past : trainer_->pasts())
      runtime_.in_step([&](Step& step) {
        const TokenBatch batch = tokens.batch_of(first_piece, placed);
        Tape tape(step, Tape::Mode::inference);
        placed.model.hidden(tape, batch, past);
      });
}

std::vector<double> Rehearsal::train(std::int64_t steps, KernelObserver* observer, bool replay) {
  std::vector<double> seconds;
  runtime_.step().observe(observer);
  trainer_->allow_replay(replay);
  for (std::int64_t step = 0; step < steps; ++step) {
    const Stopwatch watch;
    trainer_->step(block_);
    runtime_.backend().synchronize();
    seconds.push_back(watch.seconds());
  }
  runtime_.step().observe(nullptr);
  std::ranges::sort(seconds);
  return seconds;
}

}  // namespace engram

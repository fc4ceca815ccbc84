#include "apps/studies/bench/inference_bench.hpp"

#include <algorithm>
#include <cmath>

#include "apps/run/model/block_tensors.hpp"
#include "apps/studies/bench/median.hpp"
#include "autograd/tape.hpp"
#include "core/stopwatch.hpp"

namespace engram {
namespace {

/// Seconds of one block of random tokens, once the past is full: up to the logits, for a vocabulary in clusters up to
/// the losses, or up to all words' probabilities for a single token.
class BlockTimer {
 public:
  BlockTimer(BenchModel& bench, const PlacedModel& placed, ModelPast past, std::int64_t streams, std::int64_t block)
      : placed_(placed),
        in_clusters_(!bench.config.model.cutoffs().empty()),
        past_(std::move(past)),
        block_(block),
        tokens_(bench_tokens(streams * block, bench.config.model, 0)) {
    for (std::int64_t seen = 0; seen <= bench.longest_past(); seen += block) run();
  }

  double run() {
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

 private:
  PlacedModel placed_;
  bool in_clusters_;
  ModelPast past_;
  std::int64_t block_;
  std::vector<std::int32_t> tokens_;
  BlockTensors input_;
};

/// `past`: positions that the model keeps of what came before, beyond the block.
BlockInference time_block(BenchModel& bench, Runtime& runtime, std::int64_t block, double past, std::int64_t runs) {
  const std::int64_t streams = bench.config.training.batch;
  BlockInference one;
  one.block = block;
  one.cached_blocks = past / static_cast<double>(block);
  const PlacedModel placed = bench.placed(runtime);
  BlockTimer forward(bench, placed, placed.training_past(streams), streams, block);
  BlockTimer frozen(bench, placed, placed.frozen_past(streams, block), streams, block);
  std::vector<double> forward_seconds, frozen_seconds;
  for (std::int64_t run = 0; run < runs; ++run) {  // alternating, so that both see the same machine
    forward_seconds.push_back(forward.run());
    frozen_seconds.push_back(frozen.run());
  }
  one.forward_seconds = median_of(std::move(forward_seconds));
  one.frozen_seconds = median_of(std::move(frozen_seconds));
  const StepCost cost = bench.cost(block);
  one.forward_flops = cost.forward_flops;
  one.frozen_flops = cost.frozen_flops;
  return one;
}

std::vector<BlockInference> time_blocks(const BenchCase& bench, BenchModel& model, Runtime& runtime,
                                        std::int64_t runs) {
  std::vector<BlockInference> blocks;
  const std::int64_t block = bench.config.training.block;
  if (bench.config.model.family == ModelFamily::all_attention) {
    const double window = model.cost(block).window;
    for (const int share : {4, 16})
      blocks.push_back(
          time_block(model, runtime, std::max<std::int64_t>(1, std::llround(window / share)), window, runs));
    return blocks;
  }
  const std::int64_t memory = model.longest_past();
  blocks.push_back(time_block(model, runtime, block, static_cast<double>(memory), runs));
  // Only Transformer-XL can remember other numbers of positions with the same weights, and some of it remembers none.
  if (bench.config.model.family != ModelFamily::transformer_xl || memory == 0) return blocks;
  for (const std::int64_t longer : {4 * block, 16 * block}) {
    if (longer == memory) continue;
    BenchCase with = bench;
    with.config.model.transformer_xl.memory = longer;
    BenchModel remembering(with, runtime.backend());
    blocks.push_back(time_block(remembering, runtime, block, static_cast<double>(longer), runs));
  }
  return blocks;
}

}  // namespace

InferenceResult bench_inference(const BenchCase& bench, const MachineLimits& limits, Runtime& runtime,
                                std::int64_t runs) {
  BenchCase scored = bench;
  scored.config.training.extension = 0;
  BenchModel model(scored, runtime.backend());
  const StepCost cost = model.cost(bench.config.training.block);
  InferenceResult result;
  result.window = cost.window;
  result.blocks = time_blocks(scored, model, runtime, runs);
  const PlacedModel placed = model.placed(runtime);
  BlockTimer token(model, placed, placed.frozen_past(1, 1), 1, 1);
  std::vector<double> seconds;
  for (std::int64_t run = 0; run < 16 * runs; ++run) seconds.push_back(token.run());
  result.token_seconds = median_of(std::move(seconds));
  result.token_bytes = cost.token_bytes;
  result.token_floor_seconds = result.token_bytes / limits.bytes_per_second;
  return result;
}

}  // namespace engram

#include "apps/studies/bench/inference_bench.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "apps/studies/bench/block_timer.hpp"
#include "apps/studies/bench/median.hpp"

namespace engram {
namespace {

/// `past`: positions that the model keeps of what came before, beyond the block.
BlockInference time_block(BenchModel& bench, Runtime& runtime, std::int64_t block, double past, std::int64_t runs) {
  const std::int64_t streams = bench.config.training.batch;
  BlockInference one;
  one.block = block;
  one.streams = streams;
  one.cached_blocks = past / static_cast<double>(block);
  const PlacedModel placed = bench.placed(runtime);
  std::optional<BlockTimer> forward;
  if (has_rings(bench.config.model)) forward.emplace(bench, placed, placed.training_past(streams), streams, block);
  BlockTimer frozen(bench, placed, placed.frozen_past(streams, block), streams, block);
  std::vector<double> forward_seconds, frozen_seconds;
  for (std::int64_t run = 0; run < runs; ++run) {  // alternating, so that both see the same machine
    if (forward) forward_seconds.push_back(forward->run());
    frozen_seconds.push_back(frozen.run());
  }
  if (forward) one.forward_seconds = median_of(std::move(forward_seconds));
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

GenerationRate time_generation(const BenchModel& model, const PlacedModel& placed, std::int64_t streams,
                               std::int64_t runs) {
  GenerationRate rate{.streams = streams, .prompt = model.config.training.block};
  BlockTimer timer(model, placed, placed.frozen_past(streams, rate.prompt), streams, rate.prompt);
  const auto median_of_runs = [&](std::int64_t block, std::int64_t count) {
    std::vector<double> seconds;
    for (std::int64_t run = 0; run < count; ++run) seconds.push_back(timer.run(block));
    return median_of(std::move(seconds));
  };
  rate.prompt_seconds = median_of_runs(rate.prompt, runs);
  rate.token_seconds = median_of_runs(1, 16 * runs);
  return rate;
}

}  // namespace

bool has_rings(const ModelOptions& model) {
  return model.family == ModelFamily::all_attention || model.family == ModelFamily::transformer_xl;
}

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
  for (const std::int64_t streams : {1, 64}) result.generation.push_back(time_generation(model, placed, streams, runs));
  result.token_bytes = cost.token_bytes;
  result.token_floor_seconds = result.token_bytes / limits.bytes_per_second;
  return result;
}

}  // namespace engram

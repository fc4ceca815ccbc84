#include "apps/bench/inference_bench.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "apps/training/block_tensors.hpp"
#include "autograd/tape.hpp"

namespace engram {
namespace {

/// Seconds of one block of random tokens, once the past is full: up to the logits, for a vocabulary in clusters up to
/// the losses, or up to all words' probabilities for a single token.
class BlockTimer {
 public:
  BlockTimer(BenchModel& bench, Runtime& runtime, ModelPast past, std::int64_t streams, std::int64_t block)
      : bench_(bench),
        runtime_(runtime),
        past_(std::move(past)),
        streams_(streams),
        block_(block),
        tokens_(bench_tokens(streams * block, bench.options, 0)) {
    for (std::int64_t seen = 0; seen <= bench.options.max_span; seen += block) run();
  }

  double run() {
    Step& step = runtime_.step();
    const auto start = std::chrono::steady_clock::now();
    step.begin({});
    {
      Tape tape(step, Tape::Mode::inference);
      input_.write({.inputs = tokens_, .targets = tokens_, .length = block_}, 1, bench_.model.tokens().clusters(),
                   runtime_.backend(), runtime_.memory());
      const Variable hidden = bench_.model.hidden(tape, input_.piece(0), past_);
      if (bench_.options.cutoffs.empty())
        bench_.model.tokens().logits(hidden);
      else if (block_ == 1)
        bench_.model.tokens().log_probabilities(hidden);
      else
        bench_.model.tokens().losses(hidden, input_.piece(0), 1);
      runtime_.backend().synchronize();
    }
    runtime_.arena().end_step();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  BenchModel& bench_;
  Runtime& runtime_;
  ModelPast past_;
  std::int64_t streams_, block_;
  std::vector<std::int32_t> tokens_;
  BlockTensors input_;
};

double median(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

}  // namespace

InferenceResult bench_inference(const BenchCase& bench, const MachineLimits& limits, Runtime& runtime,
                                std::int64_t runs) {
  BenchModel model(bench, runtime.backend());
  const AllAttentionOptions& options = model.options;
  const std::int64_t streams = bench.config.training.batch;
  InferenceResult result;
  result.mean_window = model.mean_window();
  for (const int share : {4, 16}) {
    BlockInference one;
    one.block = std::max<std::int64_t>(1, std::llround(result.mean_window / share));
    one.cached_blocks = result.mean_window / static_cast<double>(one.block);
    BlockTimer forward(model, runtime,
                       model.model.training_past(runtime.backend(), runtime.memory(), streams, DType::f32), streams,
                       one.block);
    BlockTimer frozen(model, runtime, model.model.frozen_past(runtime.backend(), runtime.memory(), streams, DType::f32),
                      streams, one.block);
    std::vector<double> forward_seconds, frozen_seconds;
    for (std::int64_t run = 0; run < runs; ++run) {  // alternating, so that both see the same machine
      forward_seconds.push_back(forward.run());
      frozen_seconds.push_back(frozen.run());
    }
    one.forward_seconds = median(std::move(forward_seconds));
    one.frozen_seconds = median(std::move(frozen_seconds));
    one.frozen_flops = evaluation_flops(options, result.mean_window);
    one.forward_flops =
        one.frozen_flops + training_flops(options, {result.mean_window, one.block, streams}).past_forward;
    result.blocks.push_back(one);
  }
  BlockTimer token(model, runtime, model.model.frozen_past(runtime.backend(), runtime.memory(), 1, DType::f32), 1, 1);
  std::vector<double> seconds;
  for (std::int64_t run = 0; run < 16 * runs; ++run) seconds.push_back(token.run());
  result.token_seconds = median(std::move(seconds));
  result.token_bytes = generation_bytes(options, result.mean_window, model.store.count());
  result.token_floor_seconds = result.token_bytes / limits.bytes_per_second;
  return result;
}

}  // namespace engram

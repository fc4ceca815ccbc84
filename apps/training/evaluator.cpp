#include "apps/training/evaluator.hpp"

#include <chrono>
#include <cmath>
#include <numbers>
#include <vector>

#include "apps/training/block_tensors.hpp"
#include "autograd/functions/cross_entropy.hpp"
#include "autograd/tape.hpp"
#include "core/kernels/fill.hpp"

namespace engram {
namespace {

/// Losses of all targets of a block, in nats.
std::vector<double> block_losses(AllAttentionModel& model, const data::Block& block, BlockTensors& tokens,
                                 ModelPast& past, DType dtype, Runtime& runtime) {
  Step& step = runtime.step();
  step.begin({});
  tokens.write(block, runtime.backend(), runtime.memory());
  const auto [inputs, targets] = tokens.rows(0, block.rows);
  Tape tape(step, Tape::Mode::inference);
  Tensor row_weight = step.empty({inputs.count()}, dtype);
  kernels::fill(step, row_weight, 1.0);
  const Tensor row_loss = cross_entropy(model.forward(tape, inputs, past), targets, row_weight).row_loss;
  std::vector<double> losses(static_cast<std::size_t>(row_loss.count()));
  dispatch_float(dtype, "evaluate", [&]<class T>() {
    std::vector<T> host(losses.size());
    runtime.backend().copy(host.data(), row_loss.raw(), row_loss.bytes(), CopyKind::device_to_host);
    std::copy(host.begin(), host.end(), losses.begin());
  });
  return losses;
}

}  // namespace

double Evaluation::bits() const { return nll() / std::numbers::ln2; }

Evaluation evaluate(AllAttentionModel& model, data::EvaluationPlan& plan, ModelPast& past, DType dtype,
                    Runtime& runtime, const TokenLoss& found) {
  const auto start = std::chrono::steady_clock::now();
  Evaluation result;
  data::Block block;
  BlockTensors tokens;
  plan.begin();
  while (plan.next(block)) {
    if (block.zero_caches)
      for (const auto& layer : past) layer->reset();
    const std::vector<double> losses = block_losses(model, block, tokens, past, dtype, runtime);
    runtime.arena().end_step();
    for (std::size_t i = 0; i < losses.size(); ++i) {
      if (block.scored[i] == 0) continue;
      result.nll_sum += losses[i];
      if (!found) continue;
      const auto row = static_cast<std::int64_t>(i) / block.length,
                 column = static_cast<std::int64_t>(i) % block.length;
      found(block.first + row * block.stride + column + 1, losses[i]);
    }
    result.scored += block.scored_count;
    result.inputs += static_cast<std::int64_t>(losses.size());
  }
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace engram

#include "apps/training/evaluator.hpp"

#include <chrono>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "apps/config/model_options.hpp"
#include "apps/training/block_tensors.hpp"
#include "apps/training/span_means.hpp"
#include "autograd/tape.hpp"

namespace engram {
namespace {

/// Losses of all targets of a block, in nats.
std::vector<double> block_losses(LanguageModel& model, const data::Block& block, BlockTensors& tokens, ModelPast& past,
                                 SpanMeans& spans, DType dtype, Runtime& runtime, const MemoryReads& reads) {
  Step& step = runtime.step();
  step.begin({});
  tokens.write(tokens_of(block), 1, model.tokens().clusters(), runtime.backend(), runtime.memory(), dtype);
  const TokenBatch batch = tokens.piece(0);
  Tape tape(step, Tape::Mode::inference);
  ModelTrace trace(step.objects());
  trace.keep_memories = static_cast<bool>(reads);
  const Variable hidden = LanguageModel::scored(model.hidden(tape, batch, past, &trace), batch);
  if (const AllAttentionModel* const spanned = all_attention_of(std::as_const(model)))
    spans.add(*spanned, trace, runtime.backend());
  if (reads) hand_over(trace, block, runtime.backend(), reads);
  std::vector<double> losses(block.targets.size());
  for (const LossPart& part : model.tokens().losses(hidden, batch, 1))
    dispatch_float(dtype, "evaluate", [&]<class T>() {
      std::vector<T> host(static_cast<std::size_t>(part.row_loss.count()));
      runtime.backend().copy(host.data(), part.row_loss.raw(), part.row_loss.bytes(), CopyKind::device_to_host);
      const std::size_t rows = part.rows ? part.rows->size() : host.size();
      for (std::size_t i = 0; i < rows; ++i)
        losses[part.rows ? static_cast<std::size_t>((*part.rows)[i]) : i] += static_cast<double>(host[i]);
    });
  step.wrong_ids().check();
  return losses;
}

}  // namespace

double Evaluation::bits() const { return nll() / std::numbers::ln2; }

Evaluation evaluate(LanguageModel& model, data::EvaluationPlan& plan, ModelPast& past, DType dtype, Runtime& runtime,
                    const TokenLoss& found, const MemoryReads& reads) {
  return evaluate(
      model, plan, [&past](std::int64_t) -> ModelPast& { return past; }, dtype, runtime, found, reads);
}

Evaluation evaluate(LanguageModel& model, data::EvaluationPlan& plan, const PastOf& past_of, DType dtype,
                    Runtime& runtime, const TokenLoss& found, const MemoryReads& reads) {
  const auto start = std::chrono::steady_clock::now();
  Evaluation result;
  data::Block block;
  BlockTensors tokens;
  SpanMeans spans;
  plan.begin();
  while (plan.next(block)) {
    ModelPast& past = past_of(block.rows);
    if (block.zero_caches)
      for (const auto& layer : past) layer->reset();
    const std::vector<double> losses = block_losses(model, block, tokens, past, spans, dtype, runtime, reads);
    runtime.arena().end_step();
    for (std::size_t i = 0; i < losses.size(); ++i) {
      if (block.scored[i] == 0) continue;
      result.nll_sum += losses[i];
      if (found) found(block.place_of(static_cast<std::int64_t>(i)), losses[i]);
    }
    result.scored += block.scored_count;
    result.inputs += static_cast<std::int64_t>(block.inputs.size());
  }
  if (AllAttentionModel* const spanned = all_attention_of(model)) spans.give_to(*spanned);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace engram

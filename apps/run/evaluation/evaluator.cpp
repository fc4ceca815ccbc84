#include "apps/run/evaluation/evaluator.hpp"

#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "apps/run/evaluation/span_means.hpp"
#include "apps/run/model/block_tensors.hpp"
#include "apps/run/model/target_losses.hpp"
#include "autograd/tape.hpp"
#include "core/stopwatch.hpp"
#include "nn/models/model_options.hpp"

namespace engram {
namespace {

/// Losses of all targets of a block, in nats.
std::vector<double> block_losses(LanguageModel& model, const data::Block& block, BlockTensors& tokens, ModelPast& past,
                                 SpanMeans& spans, DType dtype, Runtime& runtime, const MemoryReads& reads,
                                 const BlockLosses& change) {
  Step& step = runtime.step();
  step.begin({});
  // Every target's loss is read, those that do not count among them: the model need not know which these are, and one
  // with a vocabulary in clusters could not be told.
  BlockTokens all_targets = tokens_of(block);
  all_targets.scored = {};
  tokens.write(all_targets, 1, model.tokens().clusters(), runtime.backend(), runtime.memory(), dtype);
  const TokenBatch batch = tokens.piece(0);
  Tape tape(step, Tape::Mode::inference);
  ModelTrace trace(step.objects());
  trace.keep_memories = static_cast<bool>(reads);
  const Variable hidden = LanguageModel::scored(model.hidden(tape, batch, past, &trace), batch);
  if (const AllAttentionModel* const spanned = all_attention_of(std::as_const(model)))
    spans.add(*spanned, trace, runtime.backend());
  if (reads) hand_over(trace, block, runtime.backend(), reads);
  std::vector<double> losses = target_losses(model.tokens(), hidden, batch, runtime.backend());
  if (change) change(block, hidden.value(), losses);
  step.wrong_ids().check();
  return losses;
}

}  // namespace

double Evaluation::bits() const { return nll() / std::numbers::ln2; }

Evaluation evaluate(LanguageModel& model, data::EvaluationPlan& plan, ModelPast& past, DType dtype, Runtime& runtime,
                    const TokenLoss& found, const MemoryReads& reads, const BlockLosses& change) {
  return evaluate(
      model, plan, [&past](std::int64_t) -> ModelPast& { return past; }, dtype, runtime, found, reads, change);
}

Evaluation evaluate(LanguageModel& model, data::EvaluationPlan& plan, const PastOf& past_of, DType dtype,
                    Runtime& runtime, const TokenLoss& found, const MemoryReads& reads, const BlockLosses& change) {
  const Stopwatch watch;
  Evaluation result;
  data::Block block;
  BlockTensors tokens;
  SpanMeans spans;
  plan.begin();
  while (plan.next(block)) {
    ModelPast& past = past_of(block.rows);
    if (block.zero_caches)
      for (const auto& layer : past) layer->reset();
    const std::vector<double> losses = block_losses(model, block, tokens, past, spans, dtype, runtime, reads, change);
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
  result.seconds = watch.seconds();
  return result;
}

}  // namespace engram

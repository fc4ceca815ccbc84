#include "apps/run/evaluation/evaluator.hpp"

#include <numbers>
#include <vector>

#include "apps/run/evaluation/span_means.hpp"
#include "apps/run/model/block_tensors.hpp"
#include "apps/run/model/target_losses.hpp"
#include "autograd/tape.hpp"
#include "core/stopwatch.hpp"
#include "nn/models/model_options.hpp"

namespace engram {
namespace {

/// A pass of a model over blocks, with what it keeps from block to block.
class LossPass {
 public:
  LossPass(const PlacedModel& placed, const EvaluationHooks& hooks)
      : placed_(placed), spanned_(all_attention_of(placed.model)), hooks_(&hooks) {}

  /// Losses of all targets of a block, in nats.
  std::vector<double> losses_of(const data::Block& block, ModelPast& past) {
    // Every target's loss is read, those that do not count among them: the model need not know which these are, and one
    // with a vocabulary in clusters could not be told.
    BlockTokens all_targets = tokens_of(block);
    all_targets.scored = {};
    Backend& backend = placed_.runtime.backend();
    return placed_.runtime.in_step([&](Step& step) {
      const TokenBatch batch = tensors_.batch_of(all_targets, placed_);
      Tape tape(step, Tape::Mode::inference);
      ModelTrace trace(step.objects());
      trace.keep_memories = static_cast<bool>(hooks_->reads);
      const Variable hidden = LanguageModel::scored(placed_.model.hidden(tape, batch, past, &trace), batch);
      if (spanned_ != nullptr) spans_.add(*spanned_, trace, backend);
      if (hooks_->reads) hand_over(trace, block, backend, hooks_->reads);
      std::vector<double> losses = target_losses(placed_.model.tokens(), hidden, batch, backend);
      if (hooks_->change) hooks_->change(block, hidden.value(), losses);
      step.wrong_ids().check();
      return losses;
    });
  }
  /// Gives the model the means of its spans.
  void end() {
    if (spanned_ != nullptr) spans_.give_to(*spanned_);
  }

 private:
  PlacedModel placed_;
  AllAttentionModel* spanned_;  // the model, where it has spans
  const EvaluationHooks* hooks_;
  BlockTensors tensors_;
  SpanMeans spans_;
};

}  // namespace

double Evaluation::bits() const { return nll() / std::numbers::ln2; }

Evaluation evaluate(const PlacedModel& placed, data::EvaluationPlan& plan, ModelPast& past,
                    const EvaluationHooks& hooks) {
  return evaluate(
      placed, plan, [&past](std::int64_t) -> ModelPast& { return past; }, hooks);
}

Evaluation evaluate(const PlacedModel& placed, data::EvaluationPlan& plan, const PastOf& past_of,
                    const EvaluationHooks& hooks) {
  const Stopwatch watch;
  Evaluation result;
  data::Block block;
  LossPass pass(placed, hooks);
  plan.begin();
  while (plan.next(block)) {
    ModelPast& past = past_of(block.rows);
    if (block.zero_caches)
      for (const auto& layer : past) layer->reset();
    const std::vector<double> losses = pass.losses_of(block, past);
    for (std::size_t i = 0; i < losses.size(); ++i) {
      if (block.scored[i] == 0) continue;
      result.nll_sum += losses[i];
      if (hooks.found) hooks.found(block.place_of(static_cast<std::int64_t>(i)), losses[i]);
    }
    result.scored += block.scored_count;
    result.inputs += static_cast<std::int64_t>(block.inputs.size());
  }
  pass.end();
  result.seconds = watch.seconds();
  return result;
}

}  // namespace engram

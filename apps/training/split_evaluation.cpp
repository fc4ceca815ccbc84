#include "apps/training/split_evaluation.hpp"

#include <algorithm>
#include <memory>

#include "apps/data/evaluation_plan.hpp"

namespace engram {
namespace {

std::unique_ptr<data::EvaluationPlan> make_plan(const SplitEvaluationOptions& options, TrainedModel& trained,
                                                data::TokenView tokens, int& rows) {
  constexpr int kUsualRows = data::FullEvaluation::kUsualRows;
  if (!options.exact) {
    rows = options.batch > 0 ? options.batch : kUsualRows;
    const int block = options.block > 0 ? options.block : static_cast<int>(trained.config().training.block);
    return std::make_unique<data::FullEvaluation>(tokens, block, rows);
  }
  // With several rows, each starts so many tokens before the ones it scores that its past is as in one long run.
  // Neither changes the result, so both are what is fast: several rows, unless what they must read before the tokens
  // that they score costs more than an eighth, and long blocks.
  constexpr std::int64_t kWorthwhile = 8;
  constexpr int kExactBlock = 256;
  const std::int64_t reach = trained.model().reach();
  rows = options.batch > 0 ? options.batch
                           : static_cast<int>(std::clamp<std::int64_t>(
                                 tokens.size() / (kWorthwhile * std::max<std::int64_t>(1, reach)), 1, kUsualRows));
  const int block = options.block > 0 ? options.block : kExactBlock;
  return std::make_unique<data::ExactEvaluation>(tokens, block, rows, reach);
}

}  // namespace

SplitEvaluation evaluate_split(TrainedModel& trained, data::TokenView tokens, const SplitEvaluationOptions& options,
                               Runtime& runtime, const TokenLoss& found) {
  int rows = 0;
  const auto plan = make_plan(options, trained, tokens, rows);
  ModelPast past =
      trained.model().frozen_past(runtime.backend(), runtime.memory(), rows, trained.dtype(), plan->longest_block());
  return {evaluate(trained.model(), *plan, past, trained.dtype(), runtime, found), rows};
}

}  // namespace engram

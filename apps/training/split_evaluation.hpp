#pragma once
/// Measuring a trained model on a split, the papers' way or exactly: what `engram evaluate` does.

#include "apps/data/token_view.hpp"
#include "apps/training/evaluator.hpp"
#include "apps/training/trained_model.hpp"

namespace engram {

struct SplitEvaluationOptions {
  bool exact = false;  ///< score every token but the first; otherwise whole blocks of 8 streams
  int batch = 0;       ///< streams; 0: 8, with `exact` at most 8
  int block = 0;       ///< tokens of a stream per step; 0: the run's, with `exact` 256
};

struct SplitEvaluation {
  Evaluation result;
  int rows = 0;  ///< streams that were used
};
/// Through key and value rings, in the precision of the model's parameters. Throws UsageError when the split is too
/// short for the streams and blocks.
SplitEvaluation evaluate_split(TrainedModel& trained, data::TokenView tokens, const SplitEvaluationOptions& options,
                               Runtime& runtime, const TokenLoss& found = {});

}  // namespace engram

#pragma once
/// How well trained models predict when they may see farther, or less far, than in training: the columns "PPL init",
/// "PPL best" and "Attn Len" of table 6 of Dai et al. (2019). [transformer-xl 1.9, 6.5].
///
/// The attention length of a model with memory is the number of positions that it remembers, of one without memory the
/// length of the windows that it reads from nothing.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/data/vocabulary/token_kind.hpp"
#include "apps/run/evaluation/watched_plan.hpp"
#include "apps/studies/context/studied_run.hpp"

namespace engram {

struct LengthSweepOptions {
  std::vector<std::int64_t> lengths;  ///< increasing; every run's training length is added
  std::int64_t stride = 0;            ///< new tokens of each window, at most its length; 0: a quarter of it, rounded up
  std::optional<std::int64_t> clamp;  ///< none: each run's
  bool same_length = false;           ///< with memory: every query sees as many positions as the length says
  bool exact = false;                 ///< with memory: every token but the first, as SplitEvaluationOptions has it
  EvaluationWatch watch = {};         ///< hears how far the evaluation at each length has come
};

struct LengthPoint {
  std::int64_t length = 0;
  std::int64_t keys = 0;      ///< the most that a query sees, itself included
  std::int64_t stride = 0;    ///< of windows; 0 with memory
  std::optional<double> nll;  ///< nats per token; none: not possible
  std::int64_t scored = 0;    ///< tokens
  double seconds = 0;
  std::string note;  ///< why it is not possible, or what is special; no commas
};

struct LengthCurve {
  StudiedRun run;
  std::vector<LengthPoint> points;  ///< increasing lengths
};

/// Called after every point.
using LengthFound = std::function<void(const LengthPoint&)>;

/// Throws UsageError for a run of another family than transformer_xl and for a training length or another that is not
/// below the number of tokens.
void check_length_sweep(const std::vector<StudiedRun>& runs, const LengthSweepOptions& options, data::TokenView tokens);
/// Reads the tokens once for every length. Throws UsageError as evaluate_split() does.
LengthCurve sweep_lengths(const StudiedRun& run, data::TokenView tokens, const LengthSweepOptions& options,
                          Runtime& runtime, DType dtype, const LengthFound& found = {});

struct LengthSummary {
  double init = 0;                    ///< score at the training length
  double best = 0;                    ///< lowest score
  std::int64_t best_length = 0;       ///< the smallest that has it
  std::int64_t attention_length = 0;  ///< the smallest whose score is at most best + tolerance
};
/// Scores are bits per character or perplexities (score.hpp). The curve has the training length.
LengthSummary summarise(const LengthCurve& curve, data::TokenKind kind, double tolerance);

}  // namespace engram

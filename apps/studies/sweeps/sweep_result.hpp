#pragma once
/// What came of the runs of a sweep, and of each variant over its seeds.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/studies/sweeps/sweep_runs.hpp"
#include "core/names.hpp"

namespace engram {

enum class RunOutcome : unsigned char {
  waiting,  ///< not trained to the end yet
  done,
  diverged,
  out_of_memory,
  failed  ///< a number that is not finite, for example
};
constexpr auto names_of(RunOutcome) {
  return std::to_array<Named<RunOutcome>>({{RunOutcome::waiting, "waiting"},
                                           {RunOutcome::done, "done"},
                                           {RunOutcome::diverged, "diverged"},
                                           {RunOutcome::out_of_memory, "out of memory"},
                                           {RunOutcome::failed, "failed"}});
}

/// How a product-key memory of a run uses its slots: `engram memory` says the same and more.
struct ProductKeyFigures {
  std::int64_t layer = 0;  ///< the first being 1
  double usage = 0;        ///< share of slots that were read at all
  double top_usage = 0;    ///< share of slots that were ever a head's best one
  double kl = 0;           ///< of the weights from even use, nats
};

struct RunResult {
  RunOutcome outcome = RunOutcome::waiting;
  std::string reason;                       ///< why it is not done
  std::int64_t step = 0;                    ///< that training has come to
  std::optional<double> tokens_per_second;  ///< of training, over its last process
  /// Of reading, of the variant (inference_speed.hpp): tokens a second, and words of the text where data know them.
  std::optional<double> inference_tokens, inference_words;
  std::optional<double> mean_span, released_span;  ///< positions, of the newest checkpoint: SpanSummary
  std::optional<std::int64_t> best_step;           ///< of the best checkpoint
  std::optional<double> valid, best_valid;         ///< scores of the last step and of the best checkpoint
  std::optional<double> test, best_test;           ///< the same of the test split
  /// Of the last step, in the order of layers: over the test split if there is a `test`, else over validation.
  std::vector<ProductKeyFigures> memories;
};

/// Over the seeds of a variant.
struct Spread {
  double mean = 0, least = 0, most = 0;
};
/// Of the numbers that there are; none without any.
std::optional<Spread> spread_of(const std::vector<std::optional<double>>& numbers);

struct ProductKeySpread {
  std::int64_t layer = 0;
  Spread usage, top_usage, kl;
};

struct VariantResult {
  std::string name;
  data::TokenKind kind{};
  std::vector<std::string> overrides;  ///< its own
  std::int64_t parameters = 0;
  std::int64_t steps = 0;   ///< that the least trained of its runs has come to
  std::int64_t tokens = 0;  ///< of these steps
  std::optional<Spread> valid, best_valid, test, best_test;
  std::optional<Spread> tokens_per_second, mean_span, released_span;
  std::optional<double> inference_tokens, inference_words;
  std::vector<ProductKeySpread> memories;  ///< of the runs that were measured
  std::string state;                       ///< "done", or what its runs came to: "2 done, 1 diverged after step 40"
  bool best = false;  ///< lowest score of the best checkpoints among the variants whose runs are all done
};

/// In the order of the variants. `results` belong to `runs`, one each.
std::vector<VariantResult> collect_variants(const SweepOptions& options, const std::vector<SweepRun>& runs,
                                            const std::vector<RunResult>& results);

}  // namespace engram

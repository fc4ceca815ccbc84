#pragma once
/// A study from its first trial to its verdicts.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/studies/comparisons/paired_difference.hpp"
#include "apps/studies/comparisons/study_file.hpp"
#include "apps/studies/comparisons/study_runs.hpp"

namespace engram {

enum class StudyVerdict : std::uint8_t {
  seen,       ///< the interval lies on the side that the claim says; of "alike": all of it within the margin
  none_seen,  ///< the interval has both sides; of "alike": of the margin's border
  opposite,   ///< it lies on the other side; of "alike": outside the margin
  unknown     ///< runs are missing
};
constexpr auto names_of(StudyVerdict) {
  return std::to_array<Named<StudyVerdict>>({{StudyVerdict::seen, "seen"},
                                             {StudyVerdict::none_seen, "no difference seen"},
                                             {StudyVerdict::opposite, "the other way"},
                                             {StudyVerdict::unknown, "cannot be told"}});
}

/// Two neighbours of a claim.
struct StudyComparison {
  std::string claim;                         ///< in words
  std::string left, right;                   ///< variants
  std::optional<double> alike;               ///< how far perplexities may be apart, as a share; none: left is lower
  std::optional<PairedDifference> measured;  ///< none: unknown
  StudyVerdict verdict = StudyVerdict::unknown;
};

/// One trial, or one of the compared runs.
struct StudyRunResult {
  std::string name, reason;            ///< of the folder; why there is no loss
  std::optional<double> loss;          ///< nats per token: of a trial on valid, of others on test
  std::optional<double> tokens_per_s;  ///< of training, since it was last started
};

struct StudyVariantResult {
  StudyVariant variant;
  std::vector<StudyRunResult> trials;  ///< in the order of the plan's rates
  std::optional<double> rate;          ///< multiple of the variant's that had the lowest loss; none: no trial has one
  bool rate_at_end = false;            ///< it is the first or the last of several
  std::vector<StudyRunResult> runs;    ///< in the order of the seeds
};

struct StudyReport {
  StudyPlan plan;
  StudyOptions options;
  data::TokenKind kind{};
  std::int64_t blocks = 0;  ///< that are compared
  std::vector<StudyVariantResult> variants;
  std::vector<StudyComparison> comparisons;
};

/// The verdict on a difference; `alike` as StudyComparison has it.
StudyVerdict verdict_of(const PairedDifference& difference, std::optional<double> alike);

/// Trains, measures and compares. What is done is used again, and what was interrupted goes on. A run that fails is an
/// outcome; errors of files, devices and options end the study. `stop` is asked after every step and between runs: when
/// it says true, Interrupted is thrown. Throws besides what study_variants() and prepare_runs() throw.
StudyReport run_study(const StudyPlan& plan, const StudyOptions& options, const data::DataSet& data,
                      const std::function<bool()>& stop);

}  // namespace engram

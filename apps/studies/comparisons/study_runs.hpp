#pragma once
/// The runs of a study: trials of every variant with every rate, then every variant with its best rate and every seed.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/studies/comparisons/study_file.hpp"
#include "apps/studies/sweeps/sweep_runs.hpp"

namespace engram {

struct StudyOptions {
  std::filesystem::path data;  ///< DATA_DIR
  std::filesystem::path out;   ///< STUDY_DIR
  double budget = 1;           ///< multiplies the steps of all runs
  int threads = 0;             ///< 0: as many as there are
};

/// A variant, what it costs and how long it is trained.
struct StudyVariant {
  std::string name;
  std::int64_t parameters = 0;
  double flops = 0;              ///< of training on a token, by the formulas of cost, with the longest spans
  double rate = 0;               ///< schedule.rate, which plan.rates multiply
  std::int64_t warmup = 0;       ///< of the whole study: the share of the steps that the config has
  std::int64_t full_steps = 0;   ///< of the whole study
  std::int64_t steps = 0;        ///< of a run, after options.budget
  std::int64_t step_tokens = 0;  ///< of all streams
  std::int64_t checkpoint_every = 0;

  std::int64_t trial_steps(const StudyPlan& plan) const;
};

/// Of every variant of the plan. Throws UsageError for blocks of which `test` has not two, for configurations that are
/// refused, for variants that are not equal in what the plan says, and for a budget that leaves no steps.
std::vector<StudyVariant> study_variants(const StudyPlan& plan, const StudyOptions& options, const data::DataSet& data);

/// Variant by variant, every rate in order; in STUDY_DIR/trials. Throws as prepare_runs().
std::vector<SweepRun> trial_runs(const StudyPlan& plan, const StudyOptions& options, const data::DataSet& data,
                                 const std::vector<StudyVariant>& variants);

/// Seed by seed, every variant in order, with the multiple of its rate that is given; in STUDY_DIR/runs. A variant
/// without one has no runs. Throws as prepare_runs().
std::vector<SweepRun> compared_runs(const StudyPlan& plan, const StudyOptions& options, const data::DataSet& data,
                                    const std::vector<StudyVariant>& variants,
                                    const std::vector<std::optional<double>>& rates);

/// Seconds that a training step of each variant takes here: of one thread its processor time, which other programs do
/// not change; of several the least of a few.
std::vector<double> step_seconds(const StudyPlan& plan, const StudyOptions& options, const data::DataSet& data,
                                 const std::vector<StudyVariant>& variants);

}  // namespace engram

#include "apps/studies/comparisons/study.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <new>

#include "apps/run/folder/metrics_reader.hpp"
#include "apps/run/folder/run_folder.hpp"
#include "apps/run/training/trainer.hpp"
#include "apps/run/training/training_run.hpp"
#include "apps/studies/comparisons/held_out_losses.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

/// A run, and what it loses on the held-out text if it came to its end.
struct Outcome {
  StudyRunResult result;
  std::optional<HeldOutLosses> losses;
};

/// Without what to do about it, which is said for all of a study's runs at once.
std::string_view first_line(std::string_view message) { return message.substr(0, message.find('\n')); }

class StudyWork {
 public:
  StudyWork(const StudyPlan& plan, const StudyOptions& options, const data::DataSet& data,
            const std::function<bool()>& stop)
      : plan_(plan), options_(options), data_(data), stop_(stop) {}

  StudyReport work();

 private:
  void try_rates(const std::vector<StudyVariant>& variants);
  /// Throws Diverged when no comparison has rates for both its sides: nothing is trained for hours then.
  void check_rates() const;
  void compare(const std::vector<StudyVariant>& variants);
  Outcome done(const SweepRun& run, std::string_view split, const std::string& place);
  void train(const SweepRun& run, const std::string& place);
  void judge();

  const StudyPlan& plan_;
  const StudyOptions& options_;
  const data::DataSet& data_;
  const std::function<bool()>& stop_;
  StudyReport report_;
  std::map<std::string, std::vector<HeldOutLosses>> losses_;  ///< by variant, of its runs that are done
};

void StudyWork::train(const SweepRun& run, const std::string& place) {
  if (run.state.kind == RunState::Kind::finished) return;
  if (run.state.kind == RunState::Kind::diverged) throw Diverged(run.state.reason);
  if (stop_()) throw Interrupted("interrupted before it began");
  log(LogLevel::info, text("study: run ", place, ": ", run.name));
  TrainingRunOptions training;
  training.config = plan_.config;
  training.overrides = run.overrides;
  training.data = options_.data;
  training.out = run.folder;
  training.dtype = DType::f32;
  training.threads = options_.threads;
  training.resume = run.state.kind == RunState::Kind::unfinished;
  training.run = place;
  run_training(training, stop_);
}

Outcome StudyWork::done(const SweepRun& run, std::string_view split, const std::string& place) {
  Outcome outcome{.result = {.name = run.name, .reason = {}, .loss = {}, .tokens_per_s = {}}, .losses = {}};
  try {
    train(run, place);
    WorkProgress progress(text(run.name, ", reading its checkpoint"));
    const std::filesystem::path kept =
        options_.out / "losses" / text(run.folder.parent_path().filename().string(), "-", run.name, ".json");
    HeldOutLosses losses = held_out_losses(run, data_, split, plan_.block, kept, options_.threads, progress, stop_);
    // A number that is none would be neither above nor below any other, and so would be taken for the best.
    if (!std::isfinite(losses.mean()))
      throw Diverged(text("its loss on ", split, " is not finite (", losses.mean(), ")"));
    outcome.result.loss = losses.mean();
    outcome.losses = std::move(losses);
    outcome.result.tokens_per_s = read_run_end(run.folder / "metrics.jsonl").tokens_per_second;
  } catch (const OutOfMemory&) {
    outcome.result.reason = "out of memory";
  } catch (const std::bad_alloc&) {
    outcome.result.reason = "out of memory";
  } catch (const UsageError&) {
    throw;
  } catch (const FileError&) {
    throw;
  } catch (const DeviceError&) {
    throw;
  } catch (const Interrupted& stopped) {
    std::string what = stopped.what();
    // run_training speaks of its own option.
    what = what.substr(0, what.find("; --resume"));
    throw Interrupted(text("run '", run.name, "': ", what, "; the same study again goes on from there"));
  } catch (const Diverged& error) {
    outcome.result.reason = text("diverged: ", first_line(error.what()));
  } catch (const Error& error) {
    outcome.result.reason = text("failed: ", first_line(error.what()));
  }
  if (!outcome.result.reason.empty()) log(LogLevel::warning, text("study: ", run.name, " ", outcome.result.reason));
  return outcome;
}

void StudyWork::try_rates(const std::vector<StudyVariant>& variants) {
  const std::vector<SweepRun> runs = trial_runs(plan_, options_, data_, variants);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    StudyVariantResult& of = report_.variants[i / plan_.rates.size()];
    of.trials.push_back(done(runs[i], "valid", text("trial ", i + 1, "/", runs.size())).result);
  }
  for (StudyVariantResult& of : report_.variants) {
    std::optional<std::size_t> best;
    for (std::size_t r = 0; r < of.trials.size(); ++r)
      if (of.trials[r].loss && (!best || *of.trials[r].loss < *of.trials[*best].loss)) best = r;
    if (!best) {
      log(LogLevel::warning,
          text("study: no trial of ", of.variant.name, " has a loss: claims about it cannot be told"));
      continue;
    }
    of.rate = plan_.rates[*best];
    of.rate_at_end = plan_.rates.size() > 1 && (*best == 0 || *best + 1 == plan_.rates.size());
  }
}

void StudyWork::check_rates() const {
  const auto has_rate = [this](const std::string& name) {
    return std::ranges::any_of(report_.variants,
                               [&name](const StudyVariantResult& of) { return of.variant.name == name && of.rate; });
  };
  for (const Claim& claim : plan_.claims)
    for (std::size_t i = 0; i + 1 < claim.names.size(); ++i)
      if (has_rate(claim.names[i]) && has_rate(claim.names[i + 1])) return;
  std::string failed;
  for (const StudyVariantResult& of : report_.variants) {
    if (of.rate) continue;
    for (const StudyRunResult& trial : of.trials) failed += text("\n  ", trial.name, " ", trial.reason);
  }
  throw Diverged(text("study: two variants of a claim must have a rate whose trial has a loss, got none:", failed,
                      "\n  lower rates of [study], a longer schedule.warmup or a smaller optimizer.clip train more "
                      "stably; trials that are done are kept"));
}

void StudyWork::compare(const std::vector<StudyVariant>& variants) {
  std::vector<std::optional<double>> rates;
  for (const StudyVariantResult& of : report_.variants) rates.push_back(of.rate);
  const std::vector<SweepRun> runs = compared_runs(plan_, options_, data_, variants, rates);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    StudyVariantResult& of = report_.variants[runs[i].variant];
    Outcome outcome = done(runs[i], "test", text(i + 1, "/", runs.size()));
    of.runs.push_back(outcome.result);
    if (outcome.losses) losses_[of.variant.name].push_back(std::move(*outcome.losses));
  }
}

/// Which blocks all have scored alike, most of them whole: streams leave out the tokens that they begin and end with.
std::vector<std::size_t> common_blocks(const std::map<std::string, std::vector<HeldOutLosses>>& losses,
                                       std::int64_t block) {
  std::vector<std::size_t> common;
  if (losses.empty()) return common;
  const std::vector<std::int64_t>& first = losses.begin()->second.front().scored;
  for (std::size_t i = 0; i < first.size(); ++i) {
    bool alike = first[i] > block / 2;
    for (const auto& [name, of_variant] : losses)
      for (const HeldOutLosses& of_seed : of_variant) alike = alike && of_seed.scored[i] == first[i];
    if (alike) common.push_back(i);
  }
  return common;
}

void StudyWork::judge() {
  const std::vector<std::size_t> common = common_blocks(losses_, plan_.block);
  report_.blocks = static_cast<std::int64_t>(common.size());
  const auto means_of = [&](const std::string& name) {
    BlockLossesBySeed means;
    for (const HeldOutLosses& of_seed : losses_[name]) {
      means.emplace_back();
      for (const std::size_t i : common)
        means.back().push_back(of_seed.sums[i] / static_cast<double>(of_seed.scored[i]));
    }
    return means;
  };
  const auto add = [&](const Claim& claim, std::string left, std::string right) {
    StudyComparison comparison{.claim = claim.what,
                               .left = std::move(left),
                               .right = std::move(right),
                               .alike = claim.difference,
                               .measured = {}};
    const BlockLossesBySeed one = means_of(comparison.left), other = means_of(comparison.right);
    if (one.size() == plan_.seeds.size() && other.size() == plan_.seeds.size() && common.size() >= 2) {
      comparison.measured = paired_difference(one, other, plan_.confidence);
      comparison.verdict = verdict_of(*comparison.measured, comparison.alike);
    }
    report_.comparisons.push_back(std::move(comparison));
  };
  for (const Claim& claim : plan_.claims)
    for (std::size_t i = 0; i + 1 < claim.names.size(); ++i) {
      // "a > b" is "b < a".
      const bool turned = !claim.difference && claim.relations[i] == Relation::greater;
      add(claim, claim.names[turned ? i + 1 : i], claim.names[turned ? i : i + 1]);
      // What is alike is so with all others too.
      if (claim.difference)
        for (std::size_t j = i + 2; j < claim.names.size(); ++j) add(claim, claim.names[i], claim.names[j]);
    }
}

StudyReport StudyWork::work() {
  report_.plan = plan_;
  report_.options = options_;
  report_.kind = data_.kind();
  const std::vector<StudyVariant> variants = study_variants(plan_, options_, data_);
  for (const StudyVariant& variant : variants)
    report_.variants.push_back({.variant = variant, .trials = {}, .rate = {}, .runs = {}});
  make_folder("study", options_.out);
  try_rates(variants);
  check_rates();
  compare(variants);
  judge();
  return report_;
}

}  // namespace

StudyVerdict verdict_of(const PairedDifference& difference, std::optional<double> alike) {
  if (alike) {
    const double margin = std::log1p(*alike);
    if (difference.low >= -margin && difference.high <= margin) return StudyVerdict::seen;
    return difference.low > margin || difference.high < -margin ? StudyVerdict::opposite : StudyVerdict::none_seen;
  }
  if (difference.is_below_zero()) return StudyVerdict::seen;
  return difference.is_above_zero() ? StudyVerdict::opposite : StudyVerdict::none_seen;
}

StudyReport run_study(const StudyPlan& plan, const StudyOptions& options, const data::DataSet& data,
                      const std::function<bool()>& stop) {
  return StudyWork(plan, options, data, stop).work();
}

}  // namespace engram

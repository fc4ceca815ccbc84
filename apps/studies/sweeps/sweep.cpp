#include "apps/studies/sweeps/sweep.hpp"

#include <new>
#include <system_error>
#include <utility>

#include "apps/data/files/hash.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/evaluation/model_product_key_usage.hpp"
#include "apps/run/evaluation/score.hpp"
#include "apps/run/evaluation/span_summary.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/folder/metrics_reader.hpp"
#include "apps/run/folder/run_folder.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/run/training/trainer.hpp"
#include "apps/run/training/training_run.hpp"
#include "apps/studies/sweeps/inference_speed.hpp"
#include "apps/studies/sweeps/rank_results.hpp"
#include "apps/studies/sweeps/sweep_report.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/files/durable_file.hpp"
#include "core/log.hpp"
#include "nn/checkpoint.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

/// One run, from its training to its figures.
class Worker {
 public:
  /// `place`: which of the sweep's runs it is, "2/8".
  Worker(const SweepOptions& options, const data::DataSet& data, const SweepRun& run, std::string place,
         const std::function<bool()>& stop)
      : options_(options), data_(data), run_(run), place_(std::move(place)), stop_(stop) {}

  RunResult work();

 private:
  void train();
  /// Sets the outcome to what the function came to.
  template <class F>
  void attempt(const F& function);
  void measure();
  void measure_newest(Runtime& runtime, WorkProgress& progress);
  void measure_best(Runtime& runtime, WorkProgress& progress);
  /// `usage`: to add what memories read, or nullptr.
  double score(TrainedModel& trained, std::string_view split, WorkProgress& progress,
               ModelProductKeyUsage* usage = nullptr);
  void read_metrics();
  void check_stop() const;

  const SweepOptions& options_;
  const data::DataSet& data_;
  const SweepRun& run_;
  const std::string place_;
  const std::function<bool()>& stop_;
  RunResult result_;
};

void Worker::check_stop() const {
  if (stop_()) throw Interrupted("interrupted before it was measured");
}

template <class F>
void Worker::attempt(const F& function) {
  const auto end_as = [this](RunOutcome outcome, const char* reason) {
    result_.outcome = outcome;
    result_.reason = reason;
    log(LogLevel::warning, text("sweep: ", run_.name, " ", name_of(outcome), ": ", reason));
  };
  const std::string place = text("sweep: run '", run_.name, "': ");
  try {
    function();
  } catch (const Diverged& error) {
    end_as(RunOutcome::diverged, error.what());
  } catch (const OutOfMemory& error) {
    end_as(RunOutcome::out_of_memory, error.what());
  } catch (const std::bad_alloc&) {
    end_as(RunOutcome::out_of_memory, "out of memory");
  } catch (const UsageError& error) {
    throw UsageError(place + error.what());
  } catch (const FileError& error) {
    throw FileError(place + error.what());
  } catch (const Interrupted&) {
    throw;
  } catch (const DeviceError&) {
    throw;
  } catch (const NotAvailable&) {
    throw;
  } catch (const Error& error) {
    end_as(RunOutcome::failed, error.what());
  }
}

void Worker::train() {
  TrainingRunOptions options;
  options.config = options_.config;
  options.overrides = run_.overrides;
  options.data = options_.data;
  options.out = run_.folder;
  options.device = options_.device;
  options.dtype = options_.dtype;
  options.threads = options_.threads;
  options.resume = run_.state.kind == RunState::Kind::unfinished;
  options.run = place_;
  run_training(options, stop_);
}

double Worker::score(TrainedModel& trained, std::string_view split, WorkProgress& progress,
                     ModelProductKeyUsage* usage) {
  check_stop();
  progress.begin(text("run ", place_, ", ", split, " scored"), "tokens");
  const SplitEvaluationOptions options{.exact = options_.exact, .watch = progress.watch()};
  EvaluationHooks hooks;
  if (usage != nullptr) hooks.reads = usage->reads();
  return score_of(data_.kind(), evaluate_split(trained, {data_, split}, options, hooks).result);
}

void Worker::measure_newest(Runtime& runtime, WorkProgress& progress) {
  TrainedModel trained(checkpoint_path(run_.folder, CheckpointKind::newest), CheckpointKind::newest, runtime);
  result_.step = std::max(result_.step, trained.step());
  // Of a run that failed, the weights of its last checkpoint are not those of its last step.
  ModelProductKeyUsage usage(run_.config.model);
  if (result_.outcome == RunOutcome::done)
    result_.valid = score(trained, "valid", progress, options_.test ? nullptr : &usage);
  // After the validation, from which the means of dynamic spans are.
  if (const std::optional<SpanSummary> spans = summarize_spans(trained.model())) {
    result_.mean_span = spans->mean;
    result_.released_span = spans->layer_mean;
  }
  if (result_.outcome != RunOutcome::done) return;
  if (options_.test) result_.test = score(trained, "test", progress, &usage);
  for (const ModelProductKeyUsage::Memory& memory : usage.memories()) {
    const ProductKeyUsage::Metrics metrics = memory.usage.metrics();
    result_.memories.push_back(
        {.layer = memory.layer, .usage = metrics.usage, .top_usage = metrics.top_usage, .kl = metrics.kl});
  }
}

void Worker::measure_best(Runtime& runtime, WorkProgress& progress) {
  TrainedModel trained(checkpoint_path(run_.folder, CheckpointKind::best), CheckpointKind::best, runtime);
  result_.best_step = trained.step();
  if (result_.valid && result_.step == trained.step()) {
    // The same weights.
    result_.best_valid = result_.valid;
    result_.best_test = result_.test;
    return;
  }
  result_.best_valid = score(trained, "valid", progress);
  if (options_.test) result_.best_test = score(trained, "test", progress);
}

void Worker::measure() {
  Runtime runtime(options_.device, options_.threads);
  WorkProgress progress(text("run ", place_, ", reading its checkpoint"));
  if (is_there(checkpoint_path(run_.folder, CheckpointKind::newest))) measure_newest(runtime, progress);
  if (is_there(checkpoint_path(run_.folder, CheckpointKind::best))) measure_best(runtime, progress);
}

void Worker::read_metrics() {
  const fs::path metrics = run_.folder / "metrics.jsonl";
  if (!is_there(metrics)) return;
  const RunEnd end = read_run_end(metrics);
  result_.tokens_per_second = end.tokens_per_second;
  result_.step = end.step;
}

RunResult Worker::work() {
  result_.outcome = RunOutcome::done;
  if (run_.state.kind == RunState::Kind::diverged) {
    result_.outcome = RunOutcome::diverged;
    result_.reason = run_.state.reason;
  } else if (run_.state.kind != RunState::Kind::finished) {
    attempt([this] { train(); });
  }
  read_metrics();
  attempt([this] { measure(); });
  return result_;
}

/// Tables of a sweep that was trained before stay until all that was in them has been measured again.
void write_tables(const SweepOptions& options, const std::vector<SweepRun>& runs,
                  const std::vector<RunResult>& results) {
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (runs[i].state.kind == RunState::Kind::finished && results[i].outcome == RunOutcome::waiting) return;
  make_folder("sweep", options.out);
  write_durably(options.out / "sweep.csv", csv_of(options, collect_variants(options, runs, results)));
  write_durably(options.out / "runs.csv", csv_of(options, runs, results));
}

/// The runs of this rank, in their order; all others stay as they are. Tables are written after each by who is alone.
void work_own_runs(const SweepOptions& options, const data::DataSet& data, const std::vector<SweepRun>& runs,
                   const std::function<bool()>& stop, const Communicator& ranks, std::vector<RunResult>& results) {
  const auto step = static_cast<std::size_t>(ranks.size());
  for (auto i = static_cast<std::size_t>(ranks.rank()); i < runs.size(); i += step) {
    const SweepRun& run = runs[i];
    const std::string_view known = run.state.kind == RunState::Kind::finished   ? ", trained already"
                                   : run.state.kind == RunState::Kind::diverged ? ", has diverged before"
                                                                                : "";
    log(LogLevel::info, text("sweep: run ", i + 1, " of ", runs.size(), ": ", run.name, known));
    try {
      results[i] = Worker(options, data, run, text(i + 1, "/", runs.size()), stop).work();
      if (ranks.alone()) write_tables(options, runs, results);
      if (i + step < runs.size() && stop()) throw Interrupted("interrupted after it");
    } catch (const Interrupted& stopped) {
      std::string what = stopped.what();
      // run_training speaks of its own option.
      what = what.substr(0, what.find("; --resume"));
      throw Interrupted(text("run '", run.name, "': ", what, "; the same sweep again goes on from there"));
    }
  }
}

/// Every rank's own results become known to all.
void gather_results(Communicator& ranks, std::vector<RunResult>& results) {
  for (std::size_t first = 0; first < results.size(); first += static_cast<std::size_t>(ranks.size())) {
    const std::size_t own = first + static_cast<std::size_t>(ranks.rank());
    const std::vector<std::string> all =
        ranks.gather_texts(own < results.size() ? text_of_result(results[own]) : std::string());
    for (std::size_t q = 0; q < all.size() && first + q < results.size(); ++q)
      results[first + q] = result_of_text(all[q]);
  }
}

/// All ranks must have looked at the folders of the same runs before the first one trains in one.
void require_same_sweep(Communicator& ranks, const SweepOptions& options, const std::vector<SweepRun>& runs) {
  std::string all;
  for (const SweepRun& run : runs) all += text(run.name, "\n", to_toml(run.config), "\n");
  ranks.require_same("the folder of the sweep", options.out.string());
  ranks.require_same("the sweep", text(runs.size(), " runs with the hash ", data::hash_text(data::hash_of(all))));
}

}  // namespace

std::vector<RunResult> run_sweep(const SweepOptions& options, const data::DataSet& data,
                                 const std::vector<SweepRun>& runs, const std::function<bool()>& stop,
                                 Communicator& ranks) {
  std::vector<RunResult> results(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) results[i].step = runs[i].state.step;
  if (ranks.alone()) {
    work_own_runs(options, data, runs, stop, ranks, results);
    time_variants(options, data, runs, stop, results);
    write_tables(options, runs, results);
    return results;
  }
  require_same_sweep(ranks, options, runs);
  std::string interrupted;
  together(ranks, [&] {
    try {
      work_own_runs(options, data, runs, stop, ranks, results);
    } catch (const Interrupted& stopped) {
      interrupted = stopped.what();
    }
  });
  gather_results(ranks, results);
  together(ranks, [&] {
    if (ranks.leads()) write_tables(options, runs, results);
  });
  for (const std::string& message : ranks.gather_texts(interrupted))
    if (!message.empty()) throw Interrupted(message);
  return results;
}

}  // namespace engram

#include "apps/studies/page/page_run.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>

#include "apps/data/files/read_file.hpp"
#include "apps/report/csv_table.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/evaluation/score.hpp"
#include "apps/run/folder/run_lock.hpp"
#include "apps/studies/page/page_text.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "nn/checkpoint.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

void take_config(PageRun& run, const std::string& toml, const std::string& source) {
  run.toml = toml;
  try {
    run.config = parse_run_config(toml, source);
    run.toml = to_toml(*run.config);
  } catch (const Error& error) {
    run.problems.push_back(text(source, ", the configuration: ", one_line(error.what())));
  }
}

/// The scores of a run that a sweep has measured, from its table.
void take_sweep(PageRun& run, const fs::path& table) {
  std::error_code ignored;
  if (!fs::exists(table, ignored)) return;
  try {
    const CsvTable runs = parse_csv(data::read_bytes(table, data::Pipes::refused), text("'", table.string(), "'"));
    const std::size_t folder = runs.column("folder");
    for (const auto& row : runs.rows) {
      if (folder >= row.size() || row[folder] != run.source.folder.filename().string()) continue;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string& name = runs.names[i];
        if (row[i].empty()) continue;
        if (name.starts_with("test_")) run.test = std::stod(row[i]);
        if (name.starts_with("best_test_")) run.best_test = std::stod(row[i]);
      }
    }
  } catch (const std::exception& error) {
    run.problems.push_back(text("'", table.string(), "', the results of the sweep: ", one_line(error.what())));
  }
}

void take_state(const PageRun& run, RunSummary& summary) {
  const std::vector<RunMark>& marks = run.log.marks();
  const bool has_log = !marks.empty() || !run.log.train().empty();
  if (run.source.folder.empty() || (!has_log && run.study && run.study->facts)) {
    summary.state = PageState::checkpoint;
    return;
  }
  const std::string last = marks.empty() ? "" : marks.back().event;
  std::string reason = marks.empty() ? "" : text_in(marks.back().line, "reason");
  // Who says so is known.
  if (reason.starts_with("training: ")) reason.erase(0, std::string_view("training: ").size());
  if (is_locked(run.source.folder)) {
    summary.state = PageState::training;
  } else if (!has_log) {
    summary.state = PageState::waiting;
  } else if (last == "end") {
    summary.state = PageState::done;
    if (summary.step < summary.planned)
      summary.reason = text("it ended before the planned ", summary.planned, " steps");
  } else if (last == "interrupted") {
    summary.state = PageState::interrupted;
    summary.reason = "by a signal, such as Ctrl-C; --resume goes on from there";
  } else if (last == "diverged") {
    summary.state = PageState::diverged;
    summary.reason = reason;
  } else if (last == "out_of_memory") {
    summary.state = PageState::out_of_memory;
    summary.reason = reason;
  } else {
    summary.state = PageState::stopped;
    summary.reason = "its log has no end: it was killed, or it is being trained on another machine";
  }
}

void take_losses(const PageRun& run, RunSummary& summary) {
  for (const ValidReport& report : run.log.valid()) {
    if (!std::isfinite(report.loss)) continue;
    summary.last = {report.step, report.loss};
    if (!summary.best || report.loss < summary.best->second) summary.best = summary.last;
  }
  if (run.log.train().empty()) return;
  const TrainReport& last = run.log.train().back();
  if (std::isfinite(last.tokens_per_second)) summary.tokens_per_second = last.tokens_per_second;
  for (const TrainReport& report : run.log.train())
    if (std::isfinite(report.seconds)) summary.seconds = report.seconds;
}

}  // namespace

fs::path checkpoint_of(const PageSource& source) {
  if (!source.checkpoint.empty()) return source.checkpoint;
  std::error_code ignored;
  for (const CheckpointKind kind : {CheckpointKind::newest, CheckpointKind::best})
    if (const fs::path path = checkpoint_path(source.folder, kind); fs::exists(path, ignored)) return path;
  return {};
}

PageRun open_run(const PageSource& source) {
  PageRun run{.source = source, .log = RunLog(source.folder / "metrics.jsonl")};
  if (source.folder.empty()) return run;
  std::error_code ignored;
  const fs::path config = source.folder / "config.toml";
  try {
    if (fs::exists(config, ignored))
      take_config(run, data::read_bytes(config, data::Pipes::refused), text("'", config.string(), "'"));
  } catch (const Error& error) {
    run.problems.push_back(one_line(error.what()));
  }
  take_sweep(run, source.folder.parent_path() / "runs.csv");
  update(run);
  return run;
}

bool update(PageRun& run) { return !run.source.folder.empty() && run.log.update(); }

std::vector<std::string> PageRun::all_problems() const {
  std::vector<std::string> all = problems;
  if (!source.folder.empty() && !log.problem().empty()) all.push_back(log.problem());
  if (study) all.insert(all.end(), study->problems.begin(), study->problems.end());
  return all;
}

std::optional<double> PageRun::guess() const {
  const std::int64_t symbols = config ? config->model.vocabulary() : 0;
  return symbols > 1 ? std::optional(std::log(static_cast<double>(symbols))) : std::nullopt;
}

RunSummary summary_of(const PageRun& run) {
  RunSummary summary;
  const std::vector<RunMark>& marks = run.log.marks();
  summary.step = run.log.step();
  summary.score = run.log.score();
  std::optional<RunConfig> config = run.config;
  if (run.study && run.study->facts) {
    if (!config) config = run.study->facts->config;
    if (summary.score.empty()) summary.score = score_name(run.study->facts->vocabulary.kind());
    if (marks.empty()) summary.step = run.study->facts->step;
    for (const TensorStatistics& tensor : run.study->tensors) summary.parameters += tensor.count;
  }
  if (config) {
    summary.family = name_of(config->model.family);
    summary.planned = config->total_steps();
    constexpr double kMostTokens = 9e18;
    const double tokens = static_cast<double>(summary.step) * static_cast<double>(config->training.batch) *
                          static_cast<double>(config->training.block);
    if (tokens < kMostTokens) summary.tokens = static_cast<std::int64_t>(tokens);
  }
  for (const RunMark& mark : marks) {
    summary.planned = count_in(mark.line, "steps").value_or(summary.planned);
    summary.parameters = count_in(mark.line, "parameters").value_or(summary.parameters);
    if (const std::string data = text_in(mark.line, "data"); !data.empty()) summary.data = data;
  }
  take_losses(run, summary);
  summary.test = run.best_test ? run.best_test : run.test;
  take_state(run, summary);
  const std::optional<double> guess = run.guess();
  if (summary.state == PageState::diverged && guess && summary.best && summary.best->second > *guess)
    summary.best.reset();
  return summary;
}

std::vector<std::size_t> best_runs(const std::vector<RunSummary>& runs) {
  std::map<std::string, std::vector<std::size_t>> of_data;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (runs[i].best) of_data[runs[i].data + runs[i].score].push_back(i);
  std::vector<std::size_t> best;
  for (const auto& [data, members] : of_data) {
    if (members.size() < 2 && of_data.size() > 1) continue;
    best.push_back(*std::ranges::min_element(
        members, {}, [&runs](std::size_t i) { return std::pair(runs[i].best->second, runs[i].best->first); }));
  }
  std::ranges::sort(best);
  return best;
}

}  // namespace engram

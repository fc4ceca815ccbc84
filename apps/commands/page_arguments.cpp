#include "apps/commands/page_arguments.hpp"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "apps/commands/shared_options.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/studies/page/checkpoint_study.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/parse_json.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

/// Where the data of a run may be that its newest command named; empty: not known, or not there.
std::filesystem::path data_of(const PageRun& run) {
  std::vector<std::string> words;
  std::string directory;
  for (const RunMark& mark : run.log.marks())
    if (const auto found = mark.line.find("command"); found != mark.line.end() && found->is_array()) {
      words.clear();
      for (const auto& word : *found) words.push_back(word.is_string() ? word.get<std::string>() : "");
      const auto folder = mark.line.find("directory");
      directory = folder != mark.line.end() && folder->is_string() ? folder->get<std::string>() : "";
    }
  return find_run_data(words, directory, run.source.folder);
}

nlohmann::json read_bench(const std::string& file) {
  try {
    nlohmann::json bench = parse_json(data::read_bytes(file));
    if (bench.is_object()) return bench;
  } catch (const nlohmann::json::exception&) {
    // Told below.
  }
  throw FileError(text("report: --bench must be a file that engram bench --json printed, got '", file, "'"));
}

}  // namespace

void PageArguments::add_to(Command& command) {
  command.add_option("runs", runs, "folders of runs and of sweeps, and checkpoint files")
      ->required()
      ->value_name("RUN");
  command.add_option("--data", data_,
                     "data folder whose valid split the models read [each run's own, where it still is]");
  command.add_option("--text", text_, "text that heads are shown reading, instead of the valid split");
  command.add_option("--bench", bench_, "file with what engram bench --json printed: where the time of a step goes")
      ->value_name("FILE");
  command.add_option("--length", length_, "tokens of every sample")->positive()->capture_default_str();
  command.add_flag("--only-logs", only_logs_,
                   "leave out what takes longest: reading checkpoints and running their models (attention, samples, "
                   "memories, tensors)");
  add_device_option(command, device_);
  add_threads_option(command, threads_);
}

Page PageArguments::read(std::string_view command) const {
  Page page;
  if (!bench_.empty()) page.bench = read_bench(bench_);
  PageSources sources = find_sources(runs);
  page.problems = std::move(sources.problems);
  if (sources.runs.empty())
    throw UsageError(text(command, ": there must be a run, a sweep or a checkpoint to show, got none\n  ",
                          page.problems.empty() ? std::string("no argument") : page.problems.front()));
  WorkProgress progress("reading logs");
  (void)request();  // a device that is none is refused before anything is read
  for (const PageSource& source : sources.runs) {
    progress.begin(text("reading '", source.name, "'"));
    PageRun run = open_run(source);
    study(run, progress);
    page.runs.push_back(std::move(run));
  }
  progress.end();
  for (const std::string& problem : page.problems) log(LogLevel::warning, problem);
  for (const PageRun& run : page.runs)
    for (const std::string& problem : run.all_problems()) log(LogLevel::warning, problem);
  return page;
}

StudyRequest PageArguments::request() const {
  StudyRequest request{.data = data_, .text = text_, .runs_model = !only_logs_, .length = length_, .threads = threads_};
  request.device = parse_device(device_);
  return request;
}

void PageArguments::study(PageRun& run, WorkProgress& progress) const {
  const bool has_log = !run.log.marks().empty() || !run.log.train().empty();
  const std::filesystem::path checkpoint = checkpoint_of(run.source);
  if (checkpoint.empty() || (only_logs_ && has_log)) return;
  run.study = study_checkpoint(checkpoint, request(), data_of(run), progress);
}

void PageArguments::study(PageRun& run) const {
  WorkProgress progress("reading a checkpoint");
  study(run, progress);
  progress.end();
  if (!run.study) return;
  for (const std::string& problem : run.study->problems) log(LogLevel::warning, problem);
}

}  // namespace engram

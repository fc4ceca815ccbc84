#include "apps/studies/tensorboard/tensorboard_export.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/data/files/read_file.hpp"
#include "apps/report/text_table.hpp"
#include "apps/run/folder/provenance.hpp"
#include "apps/run/folder/report_lines.hpp"
#include "apps/run/folder/run_folder.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"
#include "core/files/json_integer.hpp"
#include "core/files/list_folder.hpp"
#include "core/files/restarted.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kEventFileName = "events.out.tfevents.engram";

void add_number(SummaryEvent& event, std::string tag, const json& value) {
  if (value.is_number()) event.scalars.emplace_back(std::move(tag), value.get<double>());
}

/// Under a tag, what the line has by a name; nothing where it has none.
void add_member(SummaryEvent& event, std::string tag, const json& line, const char* name) {
  if (const auto found = line.find(name); found != line.end()) add_number(event, std::move(tag), *found);
}

/// The loss in all forms that the line has, `of` being "train" or "valid".
void add_losses(SummaryEvent& event, const json& line, std::string_view of) {
  add_member(event, text("loss/", of), line, "nll");
  for (const char* name : {"bpc", "bits", "ppl", "ppl_no_eol", "ppl_no_certain_marks", "ppl_bpe"})
    add_member(event, text(name, "/", of), line, name);
  add_member(event, text("tokens_per_second/", of), line, "tokens_per_second");
}

void add_training(SummaryEvent& event, const json& line) {
  add_losses(event, line, "train");
  add_member(event, "rate", line, "learning_rate");
  add_member(event, "gradient_norm", line, "gradient_norm");
  add_member(event, "clipped", line, "tensors_above_clip");
  add_member(event, "cache_shortfalls", line, "cache_shortfalls");
  add_member(event, "span/mean", line, "span_mean");
  add_member(event, "span/longest", line, "span_longest");
  std::size_t layer = 0;
  for (const json& heads : line.value("spans", json::array())) {
    double sum = 0;
    for (const json& head : heads) sum += head.get<double>();
    if (!heads.empty()) event.scalars.emplace_back(text("span/layer_", layer), sum / static_cast<double>(heads.size()));
    ++layer;
  }
}

void add_validation(SummaryEvent& event, const json& line) {
  add_losses(event, line, "valid");
  const json layers = line.value("memory_layers", json::array());
  for (std::size_t i = 0; i < layers.size(); ++i)
    for (const auto& [name, what] :
         {std::pair{"memory_usage", "usage"}, std::pair{"memory_top_usage", "top_usage"}, std::pair{"memory_kl", "kl"}})
      add_number(event, text("memory/layer_", integer_of<std::int64_t>(layers[i]), "/", what), line.at(name).at(i));
}

/// As it was written, whatever Markdown would make of it: lines that begin with four blanks are code.
void add_sample(SummaryEvent& event, const json& line) {
  std::string shown = "    ";
  for (const char byte : line.at("prompt").get<std::string>() + line.at("text").get<std::string>()) {
    shown += byte;
    if (byte == '\n') shown += "    ";
  }
  event.texts.emplace_back("sample", std::move(shown));
}

/// When it was last written; 0 where the system does not say.
double seconds_of(const fs::path& file) {
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(file, error);
  if (error) return 0;
  const auto system = std::chrono::file_clock::to_sys(time);
  return static_cast<double>(std::chrono::floor<std::chrono::seconds>(system).time_since_epoch().count());
}

/// An event of a log, and what it adds to its point of the curves.
struct EventKind {
  const char* name;
  void (*add)(SummaryEvent& event, const json& line);
};

fs::path metrics_of_run(const fs::path& run) { return run / "metrics.jsonl"; }

/// A name for each, which differ.
std::vector<std::string> names_of_runs(const std::vector<fs::path>& runs) {
  std::vector<fs::path> whole;
  std::set<std::string> last;
  for (const fs::path& run : runs) {
    fs::path path = fs::absolute(run).lexically_normal();
    if (!path.has_filename()) path = path.parent_path();  // it ended with a slash
    last.insert(path.filename().string());
    if (std::ranges::find(whole, path) != whole.end())
      throw UsageError(text("report: a run must be named once, got '", run.string(), "' again"));
    whole.push_back(std::move(path));
  }
  std::vector<std::string> names;
  if (last.size() == whole.size()) {
    for (const fs::path& path : whole) names.push_back(path.filename().string());
    return names;
  }
  fs::path shared = whole.front().parent_path();
  for (const fs::path& path : whole)
    while (std::ranges::mismatch(shared, path).in1 != shared.end()) shared = shared.parent_path();
  for (const fs::path& path : whole) names.push_back(path.lexically_relative(shared).string());
  return names;
}

/// Other files would be drawn as if they were of the run.
void check_event_folder(const fs::path& folder) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : list_folder(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.find("tfevents") != std::string::npos && !name.starts_with(kEventFileName))
      throw UsageError(text("report: --tensorboard: '", folder.string(), "' must hold no other event files, got '",
                            name, "'\n  another --tensorboard FOLDER keeps them apart"));
  }
}

/// Writes at the end of a file of so many bytes.
void append_to(const fs::path& path, std::uint64_t bytes, std::string_view more) {
  const int file = restarted([&path] { return ::open(path.c_str(), O_WRONLY | O_CLOEXEC); });
  BufferedOutput output(file, path);
  if (file < 0) output.fail("open", errno);
  try {
    output.overwrite(bytes, more);
  } catch (...) {
    ::close(file);
    throw;
  }
  ::close(file);
}

/// Only appends where the file has the beginning of the contents already: a TensorBoard that has it open goes on
/// reading. A part that was cut off is made whole by the next call.
void write_or_append(const fs::path& path, std::string_view contents) {
  std::error_code ignored;
  if (const std::string before = fs::is_regular_file(path, ignored) ? data::read_bytes(path) : "";
      !before.empty() && contents.starts_with(before)) {
    append_to(path, before.size(), contents.substr(before.size()));
    return;
  }
  write_durably(path, contents);
}

void write_events(ExportedRun& run, std::vector<std::string>& problems) {
  const RunEvents found = run_events(metrics_of_run(run.run));
  make_folder("report", run.file.parent_path());
  // Its beginning is that of the run, so that a file from before the first report is appended to.
  std::string contents = event_record(event_file_start(found.begun));
  for (const SummaryEvent& event : found.events) {
    contents += event_record(event_message(event));
    run.scalars += std::ssize(event.scalars);
    run.samples += std::ssize(event.texts);
  }
  write_or_append(run.file, contents);
  if (!found.problem.empty()) problems.push_back(found.problem);
}

}  // namespace

RunEvents run_events(const fs::path& metrics_file) {
  // By step and, at one step, in this order; wall_time is below 0 where the line has none.
  std::map<std::pair<std::int64_t, int>, SummaryEvent> found;
  RunEvents run;
  const LeftOutLines left_out = take_reports(metrics_file, [&](const json& line) {
    const std::int64_t step = *count_in(line, "step");
    const std::string name = text_in(line, "event");
    const auto time = utc_seconds(text_in(line, "time"));
    if (name == "start") {
      found.clear();
      run.begun = time ? static_cast<double>(*time) : -1;
    }
    if (name == "resume") std::erase_if(found, [step](const auto& event) { return event.first.first > step; });
    int order = 0;
    for (const auto& [kind, add] : {EventKind{"train", add_training}, EventKind{"valid_short", add_validation},
                                    EventKind{"sample", add_sample}}) {
      ++order;
      if (name != kind) continue;
      SummaryEvent event{.wall_time = time ? static_cast<double>(*time) : -1, .step = step, .scalars = {}, .texts = {}};
      add(event, line);
      found.insert_or_assign({step, order}, std::move(event));
    }
  });
  run.problem = left_out.words(metrics_file);
  double time = seconds_of(metrics_file);
  for (auto event = found.rbegin(); event != found.rend(); ++event) {
    if (event->second.wall_time < 0) event->second.wall_time = time;
    time = event->second.wall_time;
  }
  for (auto& [place, event] : found) run.events.push_back(std::move(event));
  if (run.begun < 0) run.begun = run.events.empty() ? 0 : run.events.front().wall_time;
  return run;
}

TensorboardExport write_tensorboard(const std::vector<fs::path>& runs, const fs::path& folder) {
  if (runs.empty()) throw UsageError("report: --tensorboard needs at least one run, got none");
  const std::vector<std::string> names = names_of_runs(runs);
  TensorboardExport written{.folder = folder, .runs = {}, .problems = {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (std::error_code ignored; !fs::is_regular_file(metrics_of_run(runs[i]), ignored))
      throw UsageError(text("report: a run must be a folder with metrics.jsonl, got '", runs[i].string(), "' without"));
    check_event_folder(folder / names[i]);
    written.runs.push_back({.run = runs[i], .file = folder / names[i] / kEventFileName});
  }
  std::vector<ExportedRun> done;
  for (ExportedRun& run : written.runs) {
    try {
      write_events(run, written.problems);
      done.push_back(std::move(run));
    } catch (const FileError& error) {
      // The others are written. Where there is none that could be, nothing is said but this.
      if (written.runs.size() == 1) throw;
      written.problems.emplace_back(error.what());
    }
  }
  if (done.empty()) throw FileError(written.problems.front());
  written.runs = std::move(done);
  return written;
}

std::string table_of(const TensorboardExport& written) {
  std::vector<TableColumn> columns{{"numbers", {}}, {"samples", {}}, {"of run", {}, true}};
  for (const ExportedRun& run : written.runs) {
    columns[0].cells.push_back(text(run.scalars));
    columns[1].cells.push_back(text(run.samples));
    columns[2].cells.push_back(run.run.string());
  }
  return aligned(columns) + text("Shown by: tensorboard --logdir ", written.folder.string(), "\n");
}

json json_of(const TensorboardExport& written) {
  json runs = json::array();
  for (const ExportedRun& run : written.runs)
    runs.push_back(
        {{"run", run.run.string()}, {"file", run.file.string()}, {"numbers", run.scalars}, {"samples", run.samples}});
  return {{"tensorboard", written.folder.string()}, {"runs", std::move(runs)}, {"problems", written.problems}};
}

}  // namespace engram

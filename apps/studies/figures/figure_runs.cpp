#include "apps/studies/figures/figure_runs.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <system_error>
#include <utility>

#include "apps/data/files/read_file.hpp"
#include "apps/report/csv_table.hpp"
#include "apps/run/folder/run_folder.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

/// The last so many parts of a path.
std::string end_of(const fs::path& path, std::size_t count) {
  std::vector<std::string> parts;
  for (const fs::path& part : fs::absolute(path).lexically_normal())
    if (!part.empty() && part != "/") parts.push_back(part.string());
  std::string joined;
  for (std::size_t i = parts.size() - std::min(count, parts.size()); i < parts.size(); ++i)
    joined += (joined.empty() ? "" : "/") + parts[i];
  return joined;
}

std::vector<FigureRun> runs_of_sweep(const fs::path& sweep) {
  const fs::path table = sweep / "runs.csv";
  const CsvTable csv = parse_csv(data::read_bytes(table, data::Pipes::refused), text("'", table.string(), "'"));
  const std::size_t variant = csv.column("variant"), folder = csv.column("folder");
  if (variant >= csv.names.size() || folder >= csv.names.size())
    throw UsageError(text("figure: '", table.string(), "' must have the columns variant and folder, as those of ",
                          "engram sweep have"));
  std::vector<FigureRun> runs;
  for (const std::vector<std::string>& row : csv.rows) runs.push_back({sweep / row[folder], row[variant]});
  return runs;
}

/// Only runs whose configurations have the values.
void keep_where(std::vector<FigureRun>& runs, const std::vector<KeyValue>& where) {
  const auto has = [](const std::vector<KeyValue>& settings, const KeyValue& wanted) {
    return std::ranges::any_of(settings, [&wanted](const KeyValue& one) {
      return (one.first == wanted.first || one.first.ends_with("." + wanted.first)) &&
             same_value(one.second, wanted.second);
    });
  };
  std::erase_if(runs, [&](const FigureRun& run) {
    const std::vector<KeyValue> settings = read_settings(run.folder);
    return !std::ranges::all_of(where, [&](const KeyValue& wanted) { return has(settings, wanted); });
  });
  if (runs.empty())
    throw UsageError(
        text("figure: --where must leave runs, got none with ", where.front().first, "=", where.front().second));
}

void give_names(std::vector<FigureRun>& runs, const std::vector<std::string>& names) {
  std::vector<std::string> known;
  for (const FigureRun& run : runs)
    if (std::ranges::find(known, run.name) == known.end()) known.push_back(run.name);
  if (names.size() == runs.size()) {
    for (std::size_t i = 0; i < runs.size(); ++i) runs[i].name = names[i];
  } else if (names.size() == known.size()) {
    for (FigureRun& run : runs)
      run.name = names[static_cast<std::size_t>(std::ranges::find(known, run.name) - known.begin())];
  } else {
    throw UsageError(text("figure: --name must name each of the ", runs.size(), " runs",
                          known.size() < runs.size() ? text(" or of the ", known.size(), " variants") : "", ", got ",
                          names.size()));
  }
}

}  // namespace

std::vector<std::string> short_names(const std::vector<fs::path>& paths) {
  constexpr std::size_t kMostParts = 12;
  std::vector<std::string> names;
  for (std::size_t parts = 1; parts <= kMostParts; ++parts) {
    names.clear();
    for (const fs::path& path : paths) names.push_back(end_of(path, parts));
    if (std::set<std::string>(names.begin(), names.end()).size() == paths.size()) break;
  }
  return names;
}

std::vector<FigureRun> find_figure_runs(const std::vector<std::string>& arguments,
                                        const std::vector<std::string>& names, const std::vector<KeyValue>& where) {
  std::vector<FigureRun> runs;
  std::vector<std::size_t> single;
  std::set<fs::path> seen;
  for (const std::string& argument : arguments) {
    std::error_code ignored;
    // A run that is named twice is no second seed.
    if (!seen.insert(fs::weakly_canonical(argument, ignored)).second) continue;
    if (holds_run(argument)) {
      single.push_back(runs.size());
      runs.push_back({argument, {}});
    } else if (fs::exists(fs::path(argument) / "runs.csv", ignored)) {
      for (FigureRun& run : runs_of_sweep(argument)) runs.push_back(std::move(run));
    } else {
      throw UsageError(text("figure: each of RUN must be the folder of a run or of a sweep, got '", argument,
                            "', which has neither metrics.jsonl nor runs.csv"));
    }
  }
  // Single runs must differ: equal names would be seeds of one line.
  std::vector<fs::path> folders;
  for (const std::size_t i : single) folders.push_back(runs[i].folder);
  const std::vector<std::string> own = short_names(folders);
  for (std::size_t i = 0; i < single.size(); ++i) runs[single[i]].name = own[i];
  if (!where.empty()) keep_where(runs, where);
  if (!names.empty()) give_names(runs, names);
  return runs;
}

}  // namespace engram

#include "apps/studies/figures/sweep_folder.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <system_error>

#include "apps/data/files/read_file.hpp"
#include "apps/report/csv_table.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;

/// Columns that have numbers, but measure nothing.
bool is_measured(const std::string& column) { return column != "seed" && column != "memory_layers"; }

}  // namespace

SweepFolder::SweepFolder(fs::path folder) : folder_(std::move(folder)) {
  const fs::path table = folder_ / "runs.csv";
  std::error_code ignored;
  if (!fs::exists(table, ignored))
    throw UsageError(text("figure: the folder must be one that engram sweep wrote, got '", folder_.string(),
                          "' without a runs.csv"));
  const CsvTable csv = parse_csv(data::read_bytes(table, data::Pipes::refused), text("'", table.string(), "'"));
  for (const char* const needed : {"variant", "folder", "outcome"})
    if (csv.column(needed) >= csv.names.size())
      throw UsageError(text("figure: '", table.string(), "' must have a column ", needed,
                            ", as engram sweep writes it\n  the same sweep again writes it anew"));
  for (const std::vector<std::string>& row : csv.rows) {
    SweptRun run;
    for (std::size_t i = 0; i < row.size(); ++i) run.columns[csv.names[i]] = row[i];
    run.variant = run.columns["variant"];
    run.folder = run.columns["folder"];
    run.outcome = run.columns["outcome"];
    read_settings(run);
    runs_.push_back(std::move(run));
  }
  if (runs_.empty()) throw UsageError(text("figure: '", table.string(), "' must have runs, got none"));
  find_metrics(csv.names);
  find_varying();
}

void SweepFolder::read_settings(SweptRun& run) {
  for (const auto& [key, value] : engram::read_settings(folder_ / run.folder)) {
    if (std::ranges::find(keys_, key) == keys_.end()) keys_.push_back(key);
    run.settings[key] = value;
  }
}

void SweepFolder::find_metrics(const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (is_measured(name) &&
        std::ranges::any_of(runs_, [&name](const SweptRun& run) { return number(run, name).has_value(); }))
      metrics_.push_back(name);
}

void SweepFolder::find_varying() {
  for (const std::string& key : keys_) {
    std::set<std::string> values;
    for (const SweptRun& run : runs_)
      if (!run.settings.empty()) values.insert(setting(run, key));
    if (values.size() > 1 && key != "training.seed") varying_.push_back(key);
  }
}

bool SweepFolder::is_metric(const std::string& name) const {
  return std::ranges::find(metrics_, name) != metrics_.end();
}

std::optional<std::string> SweepFolder::key(const std::string& name) const {
  std::optional<std::string> found;
  for (const std::string& key : keys_) {
    if (key == name) return key;
    if (!key.ends_with("." + name)) continue;
    // The one that varies is meant where two sections have such a key.
    if (!found || std::ranges::find(varying_, key) != varying_.end()) found = key;
  }
  return found;
}

std::optional<double> SweepFolder::number(const SweptRun& run, const std::string& column) {
  const auto found = run.columns.find(column);
  if (found == run.columns.end()) return std::nullopt;
  std::istringstream parts(found->second);
  double sum = 0;
  int count = 0;
  for (std::string part; parts >> part; ++count) {
    const std::optional<double> one = number_in(part);
    if (!one) return std::nullopt;
    sum += *one;
  }
  return count == 0 ? std::nullopt : std::optional(sum / count);
}

std::string SweepFolder::setting(const SweptRun& run, const std::string& key) {
  const auto found = run.settings.find(key);
  return found == run.settings.end() ? "" : found->second;
}

}  // namespace engram

#include "apps/studies/figures/curve_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/folder/report_lines.hpp"
#include "apps/studies/figures/figure_names.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

struct Reported {
  std::int64_t step = 0;
  double seconds = 0, value = 0;  // NaN: not there; no number
};

/// The numbers of a log by name, without what a resumed run took back.
class CurveLog {
 public:
  /// Returns a line for people about lines that are no reports; empty: all are.
  std::string read(const fs::path& file) {
    return take_reports(file, [this](const json& line) { take(line); }).words(file);
  }
  const std::map<std::string, std::vector<Reported>>& numbers() const { return numbers_; }

 private:
  void take(const json& line);
  void add(const std::string& name, const Reported& where, const json& value) {
    numbers_[name].push_back({where.step, where.seconds, value.is_number() ? value.get<double>() : std::nan("")});
  }
  /// Memories of layers, spans of layers: a name for each.
  void add_list(const std::string& name, const Reported& where, const json& line, const json& list);

  std::map<std::string, std::vector<Reported>> numbers_;
};

void CurveLog::add_list(const std::string& name, const Reported& where, const json& line, const json& list) {
  const auto layers = line.find("memory_layers");
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (!list[i].is_number()) continue;
    const bool named = name.find("memory_") != name.npos && layers != line.end() && layers->is_array() &&
                       i < layers->size() && (*layers)[i].is_number_integer();
    add(text(name, "_", named ? (*layers)[i].get<std::int64_t>() : static_cast<std::int64_t>(i)), where, list[i]);
  }
}

void CurveLog::take(const json& line) {
  const std::string event = text_in(line, "event");
  const std::int64_t step = *count_in(line, "step");
  if (event == "start") numbers_.clear();
  if (event == "resume")
    for (auto& [name, reports] : numbers_)
      while (!reports.empty() && reports.back().step > step) reports.pop_back();
  const std::string prefix = event == "train" ? "train_" : event == "valid_short" ? "valid_" : "";
  if (prefix.empty()) return;
  const auto clock = line.find("seconds");
  const Reported where{step, clock != line.end() && clock->is_number() ? clock->get<double>() : std::nan(""), 0};
  for (const auto& [name, value] : line.items()) {
    if (name == "step" || name == "memory_layers") continue;
    if (value.is_number() || value.is_null()) add(prefix + name, where, value);
    if (value.is_array()) add_list(prefix + name, where, line, value);
  }
}

/// One run while its lines are made.
struct CurveRun {
  FigureRun run;
  CurveLog log;
  double tokens_per_step = 0;
};

class CurveMaker {
 public:
  explicit CurveMaker(const CurveRequest& request) : request_(request) {}
  Figure make();

 private:
  void read();
  std::vector<std::string> known() const;
  /// The names as logs have them.
  std::vector<std::string> metrics() const;
  std::string whole_name(const std::string& metric) const;
  Plot panel(const std::string& metric);
  /// What a run has of a metric, smoothed.
  std::vector<Reported> line(const CurveRun& run, const std::string& metric);
  PlotSeries series(const std::string& name, const std::string& metric);
  double x_of(const CurveRun& run, const Reported& report) const;
  /// Said once, whatever the panels.
  void leave_out(const std::string& what) {
    if (std::ranges::find(figure_.left_out, what) == figure_.left_out.end()) figure_.left_out.push_back(what);
  }

  const CurveRequest& request_;
  std::vector<CurveRun> runs_;
  Figure figure_;
  std::size_t fewest_ = 0, most_ = 0;  // runs of a line
};

void CurveMaker::read() {
  for (const FigureRun& run : request_.runs) {
    CurveRun one{.run = run, .log = {}};
    const fs::path file = run.folder / "metrics.jsonl";
    std::error_code ignored;
    if (!fs::exists(file, ignored)) {
      leave_out(text(run.folder.string(), ": it has no metrics.jsonl"));
      continue;
    }
    if (const std::string problem = one.log.read(file); !problem.empty()) leave_out(problem);
    if (request_.axis == CurveAxis::tokens) {
      const RunConfig config = load_run_config(run.folder / "config.toml");
      one.tokens_per_step = static_cast<double>(config.training.batch * config.training.block);
    }
    runs_.push_back(std::move(one));
  }
}

std::vector<std::string> CurveMaker::known() const {
  std::set<std::string> names;
  for (const CurveRun& run : runs_)
    for (const auto& [name, reports] : run.log.numbers()) names.insert(name);
  return {names.begin(), names.end()};
}

std::string CurveMaker::whole_name(const std::string& metric) const {
  const std::vector<std::string> names = known();
  const auto has = [&names](const std::string& name) { return std::ranges::find(names, name) != names.end(); };
  if (has(metric)) return metric;
  const bool train = has("train_" + metric), valid = has("valid_" + metric);
  if (train && valid)
    throw UsageError(text("figure: --metric must say of which reports, train_", metric, " or valid_", metric, ", got '",
                          metric, "'"));
  if (train || valid) return (train ? "train_" : "valid_") + metric;
  throw UsageError("figure: --metric must be a number of the runs' reports" + unknown_name(metric, names));
}

std::vector<std::string> CurveMaker::metrics() const {
  std::vector<std::string> all;
  for (const std::string& metric : request_.metrics) all.push_back(whole_name(metric));
  if (!all.empty()) return all;
  std::vector<std::string> scores;
  for (const char* const of : {"valid_", "train_"}) {
    for (const char* const score : {"bpc", "ppl", "ppl_bpe"})
      if (std::ranges::any_of(runs_,
                              [&](const CurveRun& run) { return run.log.numbers().contains(std::string(of) + score); }))
        scores.push_back(std::string(of) + score);
    if (!scores.empty()) break;
  }
  if (scores.size() > 1)
    throw UsageError(text("figure: runs in one figure must have one score, got ", scores[0], " and ", scores[1],
                          "\n  --metric says which; valid_nll is the loss of all"));
  if (scores.empty()) throw UsageError("figure: the runs must have reported something, got no report of a loss");
  return scores;
}

double CurveMaker::x_of(const CurveRun& run, const Reported& report) const {
  switch (request_.axis) {
    case CurveAxis::steps:
      return static_cast<double>(report.step);
    case CurveAxis::tokens:
      return static_cast<double>(report.step) * run.tokens_per_step;
    case CurveAxis::seconds:
      return report.seconds;
    case CurveAxis::hours:
      return report.seconds / 3600;
  }
  return 0;
}

std::vector<Reported> CurveMaker::line(const CurveRun& run, const std::string& metric) {
  const auto found = run.log.numbers().find(metric);
  if (found == run.log.numbers().end() || found->second.empty()) {
    leave_out(text(run.run.folder.string(), ": no ", metric));
    return {};
  }
  std::vector<Reported> reports = found->second;
  const auto gone = std::erase_if(reports, [&](const Reported& report) {
    return !std::isfinite(report.value) || !std::isfinite(x_of(run, report));
  });
  if (gone > 0)
    leave_out(text(run.run.folder.string(), ": ", gone, gone == 1 ? " report" : " reports", " of ", metric,
                   " without a number"));
  std::vector<Reported> smooth = reports;
  const std::int64_t count = std::ssize(reports);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t half = std::min({request_.smooth / 2, i, count - 1 - i});
    double sum = 0;
    for (std::int64_t k = i - half; k <= i + half; ++k) sum += reports[static_cast<std::size_t>(k)].value;
    smooth[static_cast<std::size_t>(i)].value = sum / static_cast<double>(2 * half + 1);
  }
  return smooth;
}

PlotSeries CurveMaker::series(const std::string& name, const std::string& metric) {
  struct AtStep {
    std::vector<double> x, y;
  };
  std::map<std::int64_t, AtStep> steps;
  std::size_t members = 0;
  for (const CurveRun& run : runs_) {
    if (run.run.name != name) continue;
    const std::vector<Reported> reports = line(run, metric);
    if (reports.empty()) continue;
    ++members;
    std::int64_t before = -1;
    for (const Reported& report : reports) {
      if (std::exchange(before, report.step) == report.step) continue;  // a step that was reported twice
      AtStep& at = steps[report.step];
      at.x.push_back(x_of(run, report));
      at.y.push_back(report.value);
    }
  }
  PlotSeries made{.name = name, .points = {}};
  for (const auto& [step, at] : steps)
    if (at.y.size() == members)
      made.points.push_back({.x = seeds_mean(at.x),
                             .y = seeds_mean(at.y),
                             .across = {},
                             .up = seeds_spread(at.y, request_.spread),
                             .runs = static_cast<std::int64_t>(members)});
  if (const std::size_t gone = steps.size() - made.points.size(); gone > 0)
    leave_out(text(name, ": ", gone, gone == 1 ? " step" : " steps", " that not all of its seeds report"));
  if (members > 0) {
    fewest_ = fewest_ == 0 ? members : std::min(fewest_, members);
    most_ = std::max(most_, members);
  }
  return made;
}

Plot CurveMaker::panel(const std::string& metric) {
  Plot plot;
  plot.x.title = name_of(request_.axis);
  if (request_.axis == CurveAxis::seconds || request_.axis == CurveAxis::hours) plot.x.title += " of training";
  plot.x.from_zero = true;
  plot.y.title = metric_words(metric);
  plot.bands = true;
  std::vector<std::string> names;
  for (const CurveRun& run : runs_)
    if (std::ranges::find(names, run.run.name) == names.end()) names.push_back(run.run.name);
  for (const std::string& name : names) plot.series.push_back(series(name, metric));
  return plot;
}

Figure CurveMaker::make() {
  read();
  for (const std::string& metric : metrics()) figure_.panels.push_back(panel(metric));
  figure_.what = seeds_text(fewest_, most_, request_.spread, "bands");
  if (request_.smooth > 1)
    figure_.what += text(figure_.what.empty() ? "" : "; ", "each point the mean of ", request_.smooth, " reports");
  if (figure_.what.empty()) figure_.what = "as reported while training";
  return std::move(figure_);
}

}  // namespace

Figure curve_figure(const CurveRequest& request) { return CurveMaker(request).make(); }

}  // namespace engram

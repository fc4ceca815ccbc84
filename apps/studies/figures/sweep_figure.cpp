#include "apps/studies/figures/sweep_figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "apps/studies/figures/figure_names.hpp"
#include "apps/studies/sweeps/sweep_result.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

constexpr const char* kVariant = "variant";

/// What a point is of: the value of x, and of the keys that make series.
struct PointKey {
  std::string x;
  std::vector<std::string> by;
  bool operator<(const PointKey& other) const { return std::tie(x, by) < std::tie(other.x, other.by); }
};

class SweepDrawing {
 public:
  SweepDrawing(const SweepFolder& sweep, const SweepFigureRequest& request);
  Figure draw();

 private:
  std::string metric_named(const std::string& name, const char* option) const;
  std::string key_named(const std::string& name, const char* option) const;
  void choose_runs();
  void choose_metrics();
  void choose_x();
  void choose_series();
  bool is_by(const std::string& key) const { return std::ranges::find(by_, key) != by_.end(); }
  /// Keys in which two runs with the same x and series differ.
  std::vector<std::string> open_keys() const;
  std::string x_value(const SweptRun& run) const {
    return x_ == kVariant || x_is_metric_ ? run.variant : SweepFolder::setting(run, x_);
  }
  PointKey key_of(const SweptRun& run) const;
  std::string series_name(const std::vector<std::string>& values) const;
  std::string label_of(const SweptRun& run) const;
  bool is_there(const SweptRun& run, const std::string& metric);
  Plot panel(const std::string& metric);
  void set_x(Plot& plot, const std::vector<std::string>& values) const;
  void leave_out(const std::string& what) {
    if (std::ranges::find(figure_.left_out, what) == figure_.left_out.end()) figure_.left_out.push_back(what);
  }

  const SweepFolder& sweep_;
  const SweepFigureRequest& request_;
  std::vector<const SweptRun*> runs_;
  std::vector<std::string> metrics_, by_;
  std::string x_;
  bool x_is_metric_ = false, bars_ = false;
  std::size_t fewest_ = 0, most_ = 0;  // runs of a point
  Figure figure_;
};

std::string SweepDrawing::metric_named(const std::string& name, const char* option) const {
  if (sweep_.is_metric(name)) return name;
  throw UsageError(
      text("figure: ", option, " must be a column of runs.csv with numbers", unknown_name(name, sweep_.metrics())));
}

std::string SweepDrawing::key_named(const std::string& name, const char* option) const {
  if (const std::optional<std::string> key = sweep_.key(name)) return *key;
  throw UsageError(text("figure: ", option, " must be a key of the runs' configurations",
                        unknown_name(name, sweep_.varying().empty() ? sweep_.keys() : sweep_.varying())));
}

SweepDrawing::SweepDrawing(const SweepFolder& sweep, const SweepFigureRequest& request)
    : sweep_(sweep), request_(request) {
  choose_runs();
  choose_metrics();
  choose_x();
  choose_series();
}

void SweepDrawing::choose_runs() {
  std::vector<KeyValue> where;
  for (const auto& [name, value] : request_.where) where.emplace_back(key_named(name, "--where"), value);
  for (const SweptRun& run : sweep_.runs()) {
    if (run.settings.empty()) {
      leave_out(text(run.folder, ": its configuration is not there"));
      continue;
    }
    const bool wanted = std::ranges::all_of(
        where, [&run](const KeyValue& one) { return same_value(SweepFolder::setting(run, one.first), one.second); });
    if (wanted) runs_.push_back(&run);
  }
  if (!runs_.empty()) return;
  if (where.empty())
    throw UsageError(text("figure: runs of the sweep must be in its folder '", sweep_.folder().string(),
                          "', got none of them\n  each has its config.toml in a folder of its own there"));
  std::set<std::string> values;
  for (const SweptRun& run : sweep_.runs()) values.insert(SweepFolder::setting(run, where.front().first));
  throw UsageError(text("figure: --where must leave runs, got none",
                        listed_names("values of " + where.front().first, {values.begin(), values.end()})));
}

void SweepDrawing::choose_metrics() {
  for (const std::string& name : request_.metrics) metrics_.push_back(metric_named(name, "--metric"));
  if (!metrics_.empty()) return;
  for (const char* const score : {"valid_bpc", "valid_ppl", "valid_ppl_bpe"})
    if (sweep_.is_metric(score)) metrics_.emplace_back(score);
  if (metrics_.empty())
    throw UsageError(
        text("figure: a run of the sweep must have been measured, got no score of the validation split in ", "runs.csv",
             listed_names("other columns, for --metric", sweep_.metrics())));
}

void SweepDrawing::choose_x() {
  if (request_.x.empty()) {
    x_ = sweep_.varying().size() == 1 ? sweep_.varying().front() : kVariant;
  } else if (request_.x == kVariant) {
    x_ = kVariant;
  } else if (sweep_.is_metric(request_.x)) {
    x_ = request_.x;
    x_is_metric_ = true;
  } else if (const std::optional<std::string> key = sweep_.key(request_.x)) {
    x_ = *key;
    if (std::ranges::find(sweep_.varying(), x_) == sweep_.varying().end())
      throw UsageError(text("figure: --x must be a key that varies, got ", x_, ", which is ",
                            SweepFolder::setting(*runs_.front(), x_), " in all runs",
                            listed_names("keys that vary", sweep_.varying())));
  } else {
    std::vector<std::string> known = sweep_.varying();
    known.emplace_back(kVariant);
    known.insert(known.end(), sweep_.metrics().begin(), sweep_.metrics().end());
    throw UsageError("figure: --x must be a key that varies, variant or a column of runs.csv" +
                     unknown_name(request_.x, known));
  }
  const bool numbers = std::ranges::all_of(
      runs_, [this](const SweptRun* run) { return number_in(SweepFolder::setting(*run, x_)).has_value(); });
  bars_ = !x_is_metric_ && (request_.bars || x_ == kVariant || !numbers);
}

std::vector<std::string> SweepDrawing::open_keys() const {
  std::vector<std::string> open;
  for (const std::string& key : sweep_.varying()) {
    if (key == x_ || is_by(key)) continue;
    std::map<PointKey, std::string> seen;
    const bool differs = std::ranges::any_of(runs_, [&](const SweptRun* run) {
      const std::string value = SweepFolder::setting(*run, key);
      return seen.emplace(key_of(*run), value).first->second != value;
    });
    if (differs) open.push_back(key);
  }
  return open;
}

void SweepDrawing::choose_series() {
  for (const std::string& name : request_.by) by_.push_back(key_named(name, "--by"));
  if (x_ == kVariant || x_is_metric_) return;  // runs of one variant differ in their seeds alone
  if (by_.empty()) by_ = open_keys();
  const std::vector<std::string> open = open_keys();
  if (open.empty()) return;
  throw UsageError(text("figure: --by must name all keys that differ between runs of one ", x_, ", got ",
                        request_.by.size(), listed_names("these differ too", open),
                        "\n  --where KEY=VALUE takes only runs with one value"));
}

PointKey SweepDrawing::key_of(const SweptRun& run) const {
  PointKey key{.x = x_value(run), .by = {}};
  for (const std::string& name : by_) key.by.push_back(SweepFolder::setting(run, name));
  return key;
}

std::string SweepDrawing::series_name(const std::vector<std::string>& values) const {
  std::string name;
  for (std::size_t i = 0; i < values.size(); ++i)
    name += text(i == 0 ? "" : ", ", key_words(by_[i]), " ", values[i].empty() ? "-" : values[i]);
  return name;
}

std::string SweepDrawing::label_of(const SweptRun& run) const {
  if (request_.label == "none" || (request_.label.empty() && !x_is_metric_)) return "";
  if (request_.label == kVariant) return run.variant;
  if (!request_.label.empty()) return SweepFolder::setting(run, key_named(request_.label, "--label"));
  if (by_.empty()) return run.variant;
  // What the series does not say.
  std::string label;
  for (const std::string& key : sweep_.varying())
    if (!is_by(key)) label += (label.empty() ? "" : ", ") + SweepFolder::setting(run, key);
  return label;
}

bool SweepDrawing::is_there(const SweptRun& run, const std::string& metric) {
  if (run.outcome != name_of(RunOutcome::done)) {
    leave_out(text(run.folder, ": ", run.outcome));
    return false;
  }
  for (const std::string& needed : {metric, x_is_metric_ ? x_ : metric})
    if (!SweepFolder::number(run, needed)) {
      leave_out(text(run.folder, ": no ", needed));
      return false;
    }
  return true;
}

/// The axis for values in the order in which they were found: numbers by size, others as they come.
void SweepDrawing::set_x(Plot& plot, const std::vector<std::string>& values) const {
  plot.x.title = x_is_metric_ ? metric_words(x_) : x_ == kVariant ? "" : key_words(x_);
  plot.bars = bars_;
  if (bars_) {
    plot.x.names = values;
    plot.y.from_zero = true;
  } else if (!x_is_metric_) {
    for (const std::string& value : values) plot.x.ticks.push_back(*number_in(value));
  }
}

Plot SweepDrawing::panel(const std::string& metric) {
  struct Members {
    std::vector<double> x, y;
    std::string label;
  };
  std::vector<PointKey> order;
  std::map<PointKey, Members> points;
  std::vector<std::string> values;
  std::vector<std::vector<std::string>> series;
  for (const SweptRun* run : runs_) {
    const PointKey key = key_of(*run);
    if (std::ranges::find(values, key.x) == values.end()) values.push_back(key.x);
    if (std::ranges::find(series, key.by) == series.end()) series.push_back(key.by);
    if (!is_there(*run, metric)) continue;
    Members& members = points[key];
    if (members.y.empty()) order.push_back(key);
    members.label = label_of(*run);
    members.y.push_back(*SweepFolder::number(*run, metric));
    if (x_is_metric_) members.x.push_back(*SweepFolder::number(*run, x_));
  }
  if (!x_is_metric_ && std::ranges::all_of(values, [](const std::string& one) { return number_in(one).has_value(); }))
    std::ranges::sort(values, {}, [](const std::string& one) { return *number_in(one); });
  Plot plot;
  plot.y.title = metric_words(metric);
  set_x(plot, values);
  for (const std::vector<std::string>& by : series)
    plot.series.push_back({.name = series_name(by), .points = {}, .joined = !x_is_metric_ || !request_.by.empty()});
  for (const PointKey& key : order) {
    const Members& members = points.at(key);
    const auto at = std::ranges::find(values, key.x) - values.begin();
    const double x = x_is_metric_ ? seeds_mean(members.x) : bars_ ? static_cast<double>(at) : *number_in(key.x);
    plot.series[static_cast<std::size_t>(std::ranges::find(series, key.by) - series.begin())].points.push_back(
        {.x = x,
         .y = seeds_mean(members.y),
         .across = x_is_metric_ ? seeds_spread(members.x, request_.spread) : std::nullopt,
         .up = seeds_spread(members.y, request_.spread),
         .runs = std::ssize(members.y),
         .label = members.label});
    fewest_ = fewest_ == 0 ? members.y.size() : std::min(fewest_, members.y.size());
    most_ = std::max(most_, members.y.size());
  }
  if (!x_is_metric_)
    for (PlotSeries& one : plot.series) std::ranges::stable_sort(one.points, {}, &PlotPoint::x);
  return plot;
}

Figure SweepDrawing::draw() {
  for (const std::string& metric : metrics_) figure_.panels.push_back(panel(metric));
  figure_.what = seeds_text(fewest_, most_, request_.spread, "whiskers");
  if (figure_.what.empty()) figure_.what = "one run a point";
  const bool memories = std::ranges::any_of(runs_, [](const SweptRun* run) {
    const auto layers = run->columns.find("memory_layers");
    return layers != run->columns.end() && layers->second.find(' ') != std::string::npos;
  });
  if (memories && std::ranges::any_of(metrics_, [](const std::string& name) { return name.starts_with("memory_"); }))
    figure_.what += "; of several memories the mean";
  return std::move(figure_);
}

}  // namespace

Figure sweep_figure(const SweepFolder& sweep, const SweepFigureRequest& request) {
  return SweepDrawing(sweep, request).draw();
}

}  // namespace engram

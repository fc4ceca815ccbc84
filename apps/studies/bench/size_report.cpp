#include "apps/studies/bench/size_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "apps/report/figure_page.hpp"
#include "apps/report/text_table.hpp"

namespace engram {

StepOfSize step_of_size(const BenchCase& bench, const BenchResult& result) {
  const auto steps = static_cast<double>(result.seconds.size());
  std::int64_t calls = 0;
  for (const auto& [name, total] : result.kernels.totals()) calls += total.calls;
  return {.name = bench.name,
          .parameters = result.parameters,
          .seconds = result.median_seconds(),
          .least_seconds = result.least_seconds,
          .calls = calls / static_cast<std::int64_t>(result.seconds.size()),
          .observed_seconds = result.observed_seconds / steps,
          .outside_seconds = (result.observed_seconds - result.kernels.seconds()) / steps};
}

std::string table_of(const std::vector<StepOfSize>& steps) {
  if (steps.size() < 2) return {};
  std::vector<TableColumn> columns{{"model", {}, true}, {"parameters", {}}, {"ms a step", {}},
                                   {"x floor", {}},     {"outside", {}},    {"us a call", {}}};
  for (const StepOfSize& step : steps) {
    const std::string cells[] = {step.name,
                                 text(step.parameters),
                                 fmt::format("{:.1f}", step.seconds * 1e3),
                                 fmt::format("{:.2f}", step.ratio()),
                                 fmt::format("{:.1f}%", 100 * step.outside_share()),
                                 fmt::format("{:.2f}", step.outside_of_call() * 1e6)};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  return "\nBy size; outside: of kernels, as a share of the step and for each call\n" + aligned(columns);
}

std::string svg_of(const std::vector<StepOfSize>& steps) {
  std::vector<StepOfSize> sorted = steps;
  std::ranges::stable_sort(sorted, {}, &StepOfSize::parameters);
  const auto series = [&sorted](std::string_view name, auto value) {
    PlotSeries line{.name = std::string(name), .points = {}};
    for (const StepOfSize& step : sorted)
      line.points.push_back({.x = static_cast<double>(step.parameters), .y = value(step), .across = {}, .up = {}});
    return line;
  };
  Plot times, calls;
  for (Plot* plot : {&times, &calls}) {
    plot->x.title = "parameters";
    plot->x.logarithmic = true;
  }
  times.y.title = "milliseconds a step";
  times.y.logarithmic = true;
  const auto outside = [](double factor) {
    return [factor](const StepOfSize& step) { return std::max(1e-9, step.outside_seconds) * factor; };
  };
  times.series = {series("a step", [](const StepOfSize& step) { return step.seconds * 1e3; }),
                  series("its floor", [](const StepOfSize& step) { return step.least_seconds * 1e3; }),
                  series("outside of kernels", outside(1e3))};
  // The same places, so that lines have the same look in both panels.
  calls.series = {{.name = "a step", .points = {}},
                  {.name = "its floor", .points = {}},
                  series("outside of kernels", [](const StepOfSize& step) { return step.outside_of_call() * 1e6; })};
  calls.y.title = "microseconds for each call";
  calls.y.from_zero = true;
  const FigurePage page{.width = 450, .title = {}, .note = {}};
  return figure_of_plots({times, calls}, page, "Time of a training step by parameters");
}

}  // namespace engram

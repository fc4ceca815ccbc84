#include "apps/report/line_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/report/chart_style.hpp"
#include "apps/report/colour_scale.hpp"
#include "apps/report/ticks.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

constexpr double kLegendLine = 17;

struct LineChartLayout {
  explicit LineChartLayout(const LineChart& chart) {
    left = kMargin + 24 + 56;
    top = kMargin + kTitleFont + 14;
    right = left + chart.width;
    bottom = top + chart.height;
    legend_left = right + 20;
    rows = std::max<std::size_t>(1, static_cast<std::size_t>(chart.height / kLegendLine));
    double name = 0;
    for (const LineChart::Line& line : chart.lines) name = std::max(name, text_width(line.name, kFont));
    column = kLegendMark + 6 + name + 14;
    const std::size_t columns = (chart.lines.size() + rows - 1) / rows;
    size = {legend_left + static_cast<double>(columns) * column + kMargin, bottom + 44 + kMargin};
  }
  double left = 0, top = 0, right = 0, bottom = 0;  // of the plot
  double legend_left = 0, column = 0;
  std::size_t rows = 0;  // of the legend
  SvgSize size;
};

struct Range {
  double least = 0, most = 1;
};

Range x_range(const LineChart& chart) {
  Range range{chart.lines.front().points.front().first, chart.lines.front().points.front().first};
  for (const LineChart::Line& line : chart.lines)
    for (const auto& [x, y] : line.points) range = {std::min(range.least, x), std::max(range.most, x)};
  if (!(range.most > range.least)) range.most = range.least + 1;
  return range;
}

/// From 0, or the tick below the lowest point, to the tick above the highest.
Range y_range(const LineChart& chart) {
  double most = 0, least = chart.lines.front().points.front().second;
  for (const LineChart::Line& line : chart.lines)
    for (const auto& [x, y] : line.points) most = std::max(most, y), least = std::min(least, y);
  if (chart.from_zero) least = 0;
  if (most <= least) return {least, least + 1};
  const double step = tick_step(most - least, 5);
  const Range whole{step * std::floor(least / step), step * std::ceil(most / step)};
  // Numbers so large that a step is lost in them.
  return whole.most > whole.least ? whole : Range{least, most};
}

}  // namespace

SvgSize line_chart_size(const LineChart& chart) { return LineChartLayout(chart).size; }

void draw_line_chart(SvgCanvas& canvas, double x, double y, const LineChart& chart) {
  for (const LineChart::Line& line : chart.lines)
    if (line.points.empty()) throw Error(text("line chart: '", line.name, "' must have points, got none"));
  if (chart.lines.empty()) throw Error("line chart: there must be lines, got none");
  const LineChartLayout at(chart);
  const Range across = x_range(chart), up = y_range(chart);
  const auto to_x = [&](double value) {
    return x + at.left + chart.width * (value - across.least) / (across.most - across.least);
  };
  const auto to_y = [&](double value) {
    return y + at.bottom - chart.height * (value - up.least) / (up.most - up.least);
  };

  canvas.text(x + kMargin, y + kMargin + kTitleFont - 2, chart.title, {.size = kTitleFont, .bold = true});
  for (const double value : ticks_between(up.least, up.most, tick_step(up.most - up.least, 5))) {
    canvas.line(x + at.left, to_y(value), x + at.right, to_y(value), kGrid);
    canvas.text(x + at.left - 8, to_y(value) + 4, fmt::format("{:.6g}", value),
                {.anchor = Anchor::end, .colour = kGrey});
  }
  for (const double value : ticks_between(across.least, across.most, tick_step(across.most - across.least, 6))) {
    canvas.line(to_x(value), y + at.bottom, to_x(value), y + at.bottom + 5, kGrey);
    canvas.text(to_x(value), y + at.bottom + 19, fmt::format("{:.10g}", value),
                {.anchor = Anchor::middle, .colour = kGrey});
  }
  canvas.line(x + at.left, y + at.bottom, x + at.right, y + at.bottom, kGrey);
  canvas.text(x + (at.left + at.right) / 2, y + at.bottom + 40, chart.x_title,
              {.anchor = Anchor::middle, .bold = true});
  canvas.text(x + kMargin + 12, y + (at.top + at.bottom) / 2, chart.y_title,
              {.anchor = Anchor::middle, .bold = true, .upwards = true});

  const auto coloured = std::ranges::count_if(chart.lines, [](const LineChart::Line& line) { return !line.main; });
  double number = 0;
  for (std::size_t i = 0; i < chart.lines.size(); ++i) {
    const LineChart::Line& line = chart.lines[i];
    const std::string colour =
        line.main ? std::string(kBlack) : line_colour(number++ / std::max(1.0, static_cast<double>(coloured - 1)));
    const double thickness = line.main ? 2.5 : 1.5;
    std::vector<SvgCanvas::Point> points;
    for (const auto& [across_value, up_value] : line.points) points.emplace_back(to_x(across_value), to_y(up_value));
    // A single report is a short dash, or it could not be seen.
    if (points.size() == 1) points = {{points[0].first - 3, points[0].second}, {points[0].first + 3, points[0].second}};
    canvas.polyline(points, colour, thickness, line.name);
    const std::size_t column = i / at.rows;
    const double mark_x = x + at.legend_left + static_cast<double>(column) * at.column;
    const double mark_y = y + at.top + 6 + static_cast<double>(i % at.rows) * kLegendLine;
    canvas.line(mark_x, mark_y, mark_x + kLegendMark, mark_y, colour, thickness);
    canvas.text(mark_x + kLegendMark + 6, mark_y + 4, line.name);
  }
}

}  // namespace engram

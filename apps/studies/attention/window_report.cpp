#include "apps/studies/attention/window_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "apps/report/bar_chart.hpp"
#include "apps/report/heat_map.hpp"
#include "apps/report/text_table.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

void require_positions(const WindowMeans& means) {
  if (means.positions() == 0)
    throw UsageError(text("attention: means are over positions whose window of ", means.window(),
                          " is full, but there are none in what was read"));
}

bool shows(const ShownWindows& shown, const WindowRow& row, std::int64_t column) {
  return shown.fills_up || column >= shown.means.window() - row.seen;
}

}  // namespace

std::string windows_csv(const ShownWindows& shown) {
  std::string lines = "position,token,offset,weight\n";
  for (std::size_t i = 0; i < shown.rows.size(); ++i)
    for (std::int64_t column = 0; column < shown.means.window(); ++column)
      if (const WindowRow& row = shown.rows[i]; shows(shown, row, column))
        lines += fmt::format("{},{},{},{:.6g}\n", row.position, csv_field(shown.tokens.token(std::int64_t(i))),
                             shown.means.offset(column), row.weights[static_cast<std::size_t>(column)]);
  return lines;
}

std::string windows_svg(const ShownWindows& shown, std::string_view title) {
  if (shown.rows.empty()) throw UsageError("attention: --svg draws positions of a text, but none was read");
  const std::int64_t window = shown.means.window();
  HeatMap map;
  map.title = title;
  map.note = "grey: before the start; colours end at the largest weight of a full window";
  map.row_title = "position, token read there";
  map.column_title = "offset, positions";
  for (std::int64_t column = 0; column < window; ++column)
    map.columns.push_back(std::to_string(shown.means.offset(column)));
  // Short windows have large weights that say nothing, beside which those of full ones would all look alike.
  const bool full = std::ranges::any_of(shown.rows, [window](const WindowRow& row) { return row.seen == window; });
  double largest = 0;
  for (std::size_t i = 0; i < shown.rows.size(); ++i) {
    const WindowRow& row = shown.rows[i];
    map.rows.push_back(fmt::format("{} {}", row.position, shown.tokens.token(std::int64_t(i))));
    for (std::int64_t column = 0; column < window; ++column) {
      const double weight = row.weights[static_cast<std::size_t>(column)];
      const bool shown_here = shows(shown, row, column);
      map.values.push_back(shown_here ? weight : std::numeric_limits<double>::quiet_NaN());
      if (shown_here && (row.seen == window || !full)) largest = std::max(largest, weight);
      const std::int64_t seen = std::int64_t(i) + shown.means.offset(column);
      const bool known = seen >= 0 && column >= window - row.seen;
      map.tooltips.push_back(shown_here ? fmt::format("{}{:.3f}", known ? shown.tokens.token(seen) + "  " : "", weight)
                                        : "");
    }
  }
  map.scale = {.least = 0, .most = largest > 0 ? largest : 1};
  map.scale_title = "weight";
  map.cell_width = std::clamp(480.0 / static_cast<double>(window), 12.0, 36.0);
  map.cell_height = 15;
  SvgCanvas canvas(heat_map_size(map), map.title);
  draw_heat_map(canvas, 0, 0, map);
  return canvas.document();
}

std::string window_means_csv(const WindowMeans& means) {
  require_positions(means);
  std::string lines = "offset,weight\n";
  const std::vector<double> weights = means.weights();
  for (std::size_t column = 0; column < weights.size(); ++column)
    lines += fmt::format("{},{:.6g}\n", means.offset(std::int64_t(column)), weights[column]);
  return lines;
}

std::string window_means_svg(const WindowMeans& means, std::string_view title) {
  require_positions(means);
  BarChart chart;
  chart.title = title;
  chart.x_title = "offset, positions";
  chart.y_title = "mean weight";
  const std::vector<double> weights = means.weights();
  for (std::size_t column = 0; column < weights.size(); ++column)
    chart.bars.push_back({std::to_string(means.offset(std::int64_t(column))), weights[column]});
  SvgCanvas canvas(bar_chart_size(chart), chart.title);
  draw_bar_chart(canvas, 0, 0, chart);
  return canvas.document();
}

}  // namespace engram

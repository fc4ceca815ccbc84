#include "apps/studies/attention/window_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "apps/report/bar_chart.hpp"
#include "apps/report/heat_map.hpp"
#include "apps/report/text_table.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

void require_positions(const WindowMeans& means) {
  if (means.positions() == 0)
    throw UsageError(text("attention: means are over positions whose window of ", means.window(),
                          " is full, but there are none in what was read"));
}

bool shows(const WindowReport& report, const WindowRow& row, std::int64_t column) {
  return report.fills_up || column >= report.means.window() - row.seen;
}

}  // namespace

std::string table_of(const WindowReport& report) {
  const WindowMeans& means = report.means;
  std::string lines = fmt::format("{}, window of {}: {} positions read, {} of them with a full window\n",
                                  name_of(report.readout), means.window(), report.positions, means.positions());
  if (means.positions() == 0) return lines;
  lines += fmt::format("\n{:>7} {:>12}\n", "offset", "mean weight");
  const std::vector<double> weights = means.weights();
  for (std::size_t column = 0; column < weights.size(); ++column)
    lines += fmt::format("{:>7} {:>12.4f}\n", means.offset(std::int64_t(column)), weights[column]);
  lines +=
      fmt::format("\nentropy      {:.4f} nats, of at most {:.4f}\nmean offset  {:.3f}\nnewest 1     {:.1f}%\n",
                  means.entropy(), std::log(double(means.window())), means.mean_offset(), 100 * means.newest_share(1));
  return lines +
         fmt::format("newest 5     {:.1f}%\n\n(means over positions with a full window; offset: {})\n",
                     100 * means.newest_share(5),
                     means.offset(means.window() - 1) == 0 ? "0 is the word read there" : "-1 is the state before");
}

std::string csv_of(const WindowReport& report) {
  std::string lines = "position,token,offset,weight\n";
  for (std::size_t i = 0; i < report.rows.size(); ++i)
    for (std::int64_t column = 0; column < report.means.window(); ++column)
      if (const WindowRow& row = report.rows[i]; shows(report, row, column))
        lines += fmt::format("{},{},{},{:.6g}\n", row.position, csv_field(report.tokens.token(std::int64_t(i))),
                             report.means.offset(column), row.weights[static_cast<std::size_t>(column)]);
  return lines;
}

nlohmann::json json_of(const WindowReport& report) {
  const WindowMeans& means = report.means;
  nlohmann::json object{{"readout", name_of(report.readout)},
                        {"window", means.window()},
                        {"positions", report.positions},
                        {"full_windows", means.positions()},
                        {"offsets", nlohmann::json::array()}};
  for (std::int64_t column = 0; column < means.window(); ++column) object["offsets"].push_back(means.offset(column));
  for (const char* key : {"mean_weights", "entropy_nats", "mean_offset", "newest_1", "newest_5"}) object[key] = nullptr;
  if (means.positions() > 0)
    object.update({{"mean_weights", means.weights()},
                   {"entropy_nats", means.entropy()},
                   {"mean_offset", means.mean_offset()},
                   {"newest_1", means.newest_share(1)},
                   {"newest_5", means.newest_share(5)}});
  return object;
}

std::string svg_of(const WindowReport& report) {
  if (report.rows.empty()) throw UsageError("attention: --svg draws positions of a text, but none was read");
  const std::int64_t window = report.means.window();
  HeatMap map;
  map.title = fmt::format("{}, window of {}: {}", name_of(report.readout), window, report.what);
  map.note = "grey: before the start; colours end at the largest weight of a full window";
  map.row_title = "position, token read there";
  map.column_title = "offset, positions";
  for (std::int64_t column = 0; column < window; ++column)
    map.columns.push_back(std::to_string(report.means.offset(column)));
  // Short windows have large weights that say nothing, beside which those of full ones would all look alike.
  const bool full = std::ranges::any_of(report.rows, [window](const WindowRow& row) { return row.seen == window; });
  double largest = 0;
  for (std::size_t i = 0; i < report.rows.size(); ++i) {
    const WindowRow& row = report.rows[i];
    map.rows.push_back(fmt::format("{} {}", row.position, report.tokens.token(std::int64_t(i))));
    for (std::int64_t column = 0; column < window; ++column) {
      const double weight = row.weights[static_cast<std::size_t>(column)];
      const bool shown_here = shows(report, row, column);
      map.values.push_back(shown_here ? weight : std::numeric_limits<double>::quiet_NaN());
      if (shown_here && (row.seen == window || !full)) largest = std::max(largest, weight);
      const std::int64_t seen = std::int64_t(i) + report.means.offset(column);
      const bool known = seen >= 0 && column >= window - row.seen;
      map.tooltips.push_back(shown_here ? fmt::format("{}{:.3f}", known ? report.tokens.token(seen) + "  " : "", weight)
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

std::string csv_of(const WindowMeans& means) {
  require_positions(means);
  std::string lines = "offset,weight\n";
  const std::vector<double> weights = means.weights();
  for (std::size_t column = 0; column < weights.size(); ++column)
    lines += fmt::format("{},{:.6g}\n", means.offset(std::int64_t(column)), weights[column]);
  return lines;
}

std::string svg_of(const WindowMeans& means, std::string_view title) {
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

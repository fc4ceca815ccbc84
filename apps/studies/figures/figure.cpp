#include "apps/studies/figures/figure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/report/text_table.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

using nlohmann::json;

std::size_t points_in(const Figure& figure) {
  std::size_t count = 0;
  for (const Plot& plot : figure.panels)
    for (const PlotSeries& series : plot.series) count += series.points.size();
  return count;
}

/// What the x of a point is called: its name, or the number.
std::string x_text(const Plot& plot, const PlotPoint& point) {
  const auto place = static_cast<std::size_t>(std::max(0.0, point.x));
  return place < plot.x.names.size() ? plot.x.names[place] : fmt::format("{:.6g}", point.x);
}

std::string number_text(double number) { return fmt::format("{:.6g}", number); }

/// A point of a logarithmic axis must be above 0; what only spreads below it loses that end.
bool has_place(PlotPoint& point, bool log_x, bool log_y) {
  const auto trim = [](std::optional<PlotRange>& range) {
    if (range && !(range->first > 0)) range.reset();
  };
  if ((log_x && !(point.x > 0)) || (log_y && !(point.y > 0))) return false;
  if (log_x) trim(point.across);
  if (log_y) trim(point.up);
  return true;
}

void keep_placed(Figure& figure, Plot& plot) {
  for (PlotSeries& series : plot.series) {
    const auto gone = std::erase_if(
        series.points, [&plot](PlotPoint& point) { return !has_place(point, plot.x.logarithmic, plot.y.logarithmic); });
    if (gone > 0)
      figure.left_out.push_back(text(series.name, series.name.empty() ? "" : ": ", gone,
                                     gone == 1 ? " point that is" : " points that are",
                                     " not above 0, on a logarithmic axis"));
  }
}

/// What the axes are, which would be too wide above columns.
std::string heading(const Plot& plot) {
  if (plot.x.title.empty()) return fmt::format("{}, by variant\n", plot.y.title);
  return fmt::format("{} (y) over {} (x)\n", plot.y.title, plot.x.title);
}

/// What a given range cuts off is there for the lines that lead to it, and told.
void tell_cut(Figure& figure, const Plot& plot) {
  const PlotRange shown = *plot.y.range;
  for (const PlotSeries& series : plot.series) {
    const auto gone = std::ranges::count_if(
        series.points, [&](const PlotPoint& point) { return point.y < shown.first || point.y > shown.second; });
    if (gone > 0)
      figure.left_out.push_back(text(series.name, series.name.empty() ? "" : ": ", gone,
                                     gone == 1 ? " point" : " points", " of ", series.points.size(),
                                     " outside of the y axis"));
  }
}

/// Every point in a row.
std::string points_table(const Plot& plot) {
  const bool named = std::ranges::any_of(plot.series, [](const PlotSeries& series) { return !series.name.empty(); });
  TableColumn series{"series", {}, true}, x{"x", {}, !plot.x.names.empty()}, y{"y", {}, false};
  TableColumn least{"least", {}, false}, most{"most", {}, false}, runs{"runs", {}, false}, label{"label", {}, true};
  bool spread = false, labelled = false;
  for (const PlotSeries& one : plot.series)
    for (const PlotPoint& point : one.points) {
      series.cells.push_back(one.name);
      x.cells.push_back(x_text(plot, point));
      y.cells.push_back(number_text(point.y));
      least.cells.push_back(point.up ? number_text(point.up->first) : "-");
      most.cells.push_back(point.up ? number_text(point.up->second) : "-");
      runs.cells.push_back(fmt::format("{}", point.runs));
      label.cells.push_back(point.label);
      spread = spread || point.up;
      labelled = labelled || !point.label.empty();
    }
  std::vector<TableColumn> columns;
  if (named) columns.push_back(series);
  columns.insert(columns.end(), {x, y});
  if (spread) columns.insert(columns.end(), {least, most, runs});
  if (labelled) columns.push_back(label);
  return heading(plot) + aligned(columns);
}

/// Every series in a row.
std::string series_table(const Plot& plot) {
  std::vector<TableColumn> columns{{"series", {}, true}, {"points", {}, false}, {"from", {}, false},
                                   {"to", {}, false},    {"lowest", {}, false}, {"last", {}, false}};
  for (const PlotSeries& series : plot.series) {
    if (series.points.empty()) continue;
    const PlotPoint& lowest = *std::ranges::min_element(series.points, {}, &PlotPoint::y);
    const std::string cells[] = {series.name,
                                 fmt::format("{}", series.points.size()),
                                 x_text(plot, series.points.front()),
                                 x_text(plot, series.points.back()),
                                 number_text(lowest.y),
                                 number_text(series.points.back().y)};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  return heading(plot) + aligned(columns);
}

json range_json(const std::optional<PlotRange>& range) { return range ? json{range->first, range->second} : json(); }

json series_json(const Plot& plot, const PlotSeries& series) {
  json points = json::array();
  for (const PlotPoint& point : series.points)
    points.push_back({{"x", plot.x.names.empty() ? json(point.x) : json(x_text(plot, point))},
                      {"y", point.y},
                      {"spread", range_json(point.up)},
                      {"x_spread", range_json(point.across)},
                      {"runs", point.runs},
                      {"label", point.label}});
  return {{"name", series.name}, {"points", std::move(points)}};
}

/// The line below the panels: not all that is left out would have room there.
std::string note_of(const Figure& figure) {
  constexpr std::size_t kMostNamed = 3;
  std::string note = figure.what;
  for (std::size_t i = 0; i < std::min(kMostNamed, figure.left_out.size()); ++i)
    note += (note.empty() ? "" : i == 0 ? "; left out: " : ", ") + figure.left_out[i];
  if (figure.left_out.size() > kMostNamed) note += fmt::format(", and {} more", figure.left_out.size() - kMostNamed);
  return note;
}

}  // namespace

Figure styled(Figure figure, const FigureStyle& style) {
  figure.style = style;
  for (Plot& plot : figure.panels) {
    plot.x.logarithmic = plot.x.logarithmic || style.log_x;
    plot.y.logarithmic = plot.y.logarithmic || style.log_y;
    if (!plot.x.names.empty()) plot.x.logarithmic = false;
    if (!style.x_label.empty()) plot.x.title = style.x_label;
    if (!style.y_label.empty()) plot.y.title = style.y_label;
    if (style.y_range) plot.y.range = style.y_range;
    keep_placed(figure, plot);
    if (plot.y.range) tell_cut(figure, plot);
  }
  if (points_in(figure) == 0) {
    std::string lines;
    for (const std::string& line : figure.left_out) lines += "\n  " + line;
    throw UsageError(text("figure: there must be something to draw, got nothing", lines));
  }
  std::erase_if(figure.panels, [&figure](const Plot& plot) {
    const bool empty = std::ranges::all_of(plot.series, [](const PlotSeries& series) { return series.points.empty(); });
    if (empty) figure.left_out.push_back(plot.y.title + ": no value at all");
    return empty;
  });
  return figure;
}

std::string table_of(const Figure& figure) {
  constexpr std::size_t kMostListed = 60;
  std::string lines = figure.what + "\n";
  for (const Plot& plot : figure.panels)
    lines += "\n" + (points_in(figure) <= kMostListed ? points_table(plot) : series_table(plot));
  if (!figure.left_out.empty()) lines += "\nleft out:\n";
  for (const std::string& line : figure.left_out) lines += "  " + line + "\n";
  return lines;
}

std::string csv_of(const Figure& figure) {
  std::string lines = "panel,series,x,y,least,most,x_least,x_most,runs,label\n";
  const auto range = [](const std::optional<PlotRange>& given) {
    return given ? fmt::format("{:.10g},{:.10g}", given->first, given->second) : std::string(",");
  };
  for (const Plot& plot : figure.panels)
    for (const PlotSeries& series : plot.series)
      for (const PlotPoint& point : series.points)
        lines += fmt::format("{},{},{},{:.10g},{},{},{},{}\n", csv_field(plot.y.title), csv_field(series.name),
                             plot.x.names.empty() ? fmt::format("{:.10g}", point.x) : csv_field(x_text(plot, point)),
                             point.y, range(point.up), range(point.across), point.runs, csv_field(point.label));
  return lines;
}

json json_of(const Figure& figure) {
  json panels = json::array();
  for (const Plot& plot : figure.panels) {
    json series = json::array();
    for (const PlotSeries& one : plot.series) series.push_back(series_json(plot, one));
    panels.push_back({{"x", plot.x.title}, {"y", plot.y.title}, {"bars", plot.bars}, {"series", std::move(series)}});
  }
  return {{"what", figure.what}, {"panels", std::move(panels)}, {"left_out", figure.left_out}};
}

std::string svg_of(const Figure& figure) {
  FigurePage page = figure.style.page;
  page.note = figure.style.plain ? "" : note_of(figure);
  return figure_of_plots(figure.panels, page, page.title.empty() ? figure.what : page.title);
}

}  // namespace engram

#include "apps/report/heat_map.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/report/chart_style.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

constexpr double kSmallFont = 11;
constexpr double kGap = 10;  // of the divider
constexpr double kLegendWidth = 280, kLegendHeight = 12;
constexpr std::string_view kEmptyCell = "#e4e4e4";

double widest(const std::vector<std::string>& texts, double size) {
  double width = 0;
  for (const std::string& text : texts) width = std::max(width, text_width(text, size));
  return width;
}

/// Every so many labels are written, so that each has `room` beside the `step` of one cell.
std::size_t stride_of(double room, double step) {
  return static_cast<std::size_t>(std::max(1.0, std::ceil(room / step)));
}

/// Where everything is, relative to the map's corner.
struct HeatMapLayout {
  explicit HeatMapLayout(const HeatMap& map);

  double column_left(std::size_t column) const {
    return left + static_cast<double>(column) * cell_width + (divider != 0 && column >= divider ? kGap : 0);
  }
  double row_top(std::size_t row) const { return top + static_cast<double>(row) * cell_height; }

  double cell_width, cell_height;
  std::size_t divider;
  double left = 0, top = 0, right = 0, bottom = 0;  // of the cells
  double note_left = 0;
  double legend_top = 0;
  SvgSize size;
};

HeatMapLayout::HeatMapLayout(const HeatMap& map)
    : cell_width(map.cell_width), cell_height(map.cell_height), divider(map.divider) {
  top = kMargin + kTitleFont + (map.note.empty() ? 0 : 18) + 24;  // the column axis' title stands there
  if (divider != 0) top += 18;
  top += 20;
  left = std::ceil(kMargin + 22 + widest(map.rows, kFont) + 8);  // whole pixels make sharp edges
  right = column_left(map.columns.size());
  bottom = row_top(map.rows.size());
  note_left = right + 12;
  const double notes =
      map.row_notes.empty() ? 0 : std::max(widest(map.row_notes, kFont), text_width(map.row_note_title, kFont));
  legend_top = bottom + 34;
  size.width = std::max({note_left + notes, left + kLegendWidth + 40, kMargin + text_width(map.title, kTitleFont),
                         kMargin + text_width(map.note, kFont)}) +
               kMargin;
  size.height = legend_top + kLegendHeight + 20 + kMargin;
}

void check(const HeatMap& map) {
  const std::size_t cells = map.rows.size() * map.columns.size();
  const auto fits = [](std::size_t count, std::size_t wanted) { return count == 0 || count == wanted; };
  if (cells == 0 || map.values.size() != cells || !fits(map.cell_texts.size(), cells) ||
      !fits(map.tooltips.size(), cells) || !fits(map.row_notes.size(), map.rows.size()) ||
      map.divider >= map.columns.size())
    throw Error(text("heat map: must have a value for each of ", map.rows.size(), " x ", map.columns.size(),
                     " cells and a divider between columns, got ", map.values.size(), " values, ",
                     map.cell_texts.size(), " texts, ", map.tooltips.size(), " tooltips, ", map.row_notes.size(),
                     " notes and divider ", map.divider));
}

std::string colour_of(const HeatMap& map, double value) {
  return std::isnan(value) ? std::string(kEmptyCell) : amount_colour(map.scale.share_of(value));
}

void draw_titles(SvgCanvas& canvas, const HeatMap& map, const HeatMapLayout& at, double x, double y) {
  canvas.text(x + kMargin, y + kMargin + kTitleFont - 2, map.title, {.size = kTitleFont, .bold = true});
  if (!map.note.empty())
    canvas.text(x + kMargin, y + kMargin + kTitleFont + 18, map.note, {.size = kFont, .colour = kGrey});
  const double axis = at.top - 24 - (map.divider != 0 ? 18 : 0);
  canvas.text(x + (at.left + at.right) / 2, y + axis, map.column_title, {.anchor = Anchor::middle, .bold = true});
  canvas.text(x + kMargin + 12, y + (at.top + at.bottom) / 2, map.row_title,
              {.anchor = Anchor::middle, .bold = true, .upwards = true});
  if (map.divider == 0) return;
  const double gap = at.column_left(map.divider) - kGap / 2;
  canvas.text(x + (at.left + gap) / 2, y + at.top - 24, map.left_title, {.anchor = Anchor::middle, .colour = kGrey});
  canvas.text(x + (gap + at.right) / 2, y + at.top - 24, map.right_title, {.anchor = Anchor::middle, .colour = kGrey});
  canvas.line(x + gap, y + at.top - 14, x + gap, y + at.bottom + 6, "#1a1a1a", 1.5);
}

void draw_labels(SvgCanvas& canvas, const HeatMap& map, const HeatMapLayout& at, double x, double y) {
  const std::size_t row_stride = stride_of(kFont + 2, at.cell_height);
  for (std::size_t row = 0; row < map.rows.size(); row += row_stride)
    canvas.text(x + at.left - 8, y + at.row_top(row) + at.cell_height / 2 + 4, map.rows[row], {.anchor = Anchor::end});
  const std::size_t column_stride = stride_of(widest(map.columns, kFont) + 8, at.cell_width);
  for (std::size_t column = 0; column < map.columns.size(); ++column) {
    // On both sides of a divider counting begins anew.
    const std::size_t first = map.divider != 0 && column >= map.divider ? map.divider : 0;
    if ((column - first) % column_stride == 0)
      canvas.text(x + at.column_left(column) + at.cell_width / 2, y + at.top - 6, map.columns[column],
                  {.anchor = Anchor::middle});
  }
  if (map.row_notes.empty()) return;
  canvas.text(x + at.note_left, y + at.top - 6, map.row_note_title, {.colour = kGrey});
  for (std::size_t row = 0; row < map.rows.size(); row += row_stride)
    canvas.text(x + at.note_left, y + at.row_top(row) + at.cell_height / 2 + 4, map.row_notes[row], {.colour = kGrey});
}

void draw_cells(SvgCanvas& canvas, const HeatMap& map, const HeatMapLayout& at, double x, double y) {
  const std::size_t columns = map.columns.size();
  const bool plain = map.cell_texts.empty() && map.tooltips.empty();
  const double line = plain ? 0 : 1;  // white between cells
  for (std::size_t row = 0; row < map.rows.size(); ++row) {
    for (std::size_t column = 0, next = 0; column < columns; column = next) {
      const std::size_t cell = row * columns + column;
      const double value = map.values[cell];
      const std::string colour = colour_of(map, value);
      next = column + 1;
      while (plain && next < columns && next != map.divider &&
             colour_of(map, map.values[row * columns + next]) == colour)
        ++next;
      const double left = x + at.column_left(column), top = y + at.row_top(row);
      const double width = at.column_left(next - 1) + at.cell_width - at.column_left(column);
      canvas.rect(left, top, width - line, at.cell_height - line, colour,
                  map.tooltips.empty() ? std::string_view() : std::string_view(map.tooltips[cell]));
      if (!map.cell_texts.empty())
        canvas.text(left + (width - line) / 2, top + (at.cell_height - line) / 2 + 4, map.cell_texts[cell],
                    {.anchor = Anchor::middle,
                     .colour = std::isnan(value) ? "#1a1a1a" : text_colour_on(map.scale.share_of(value))});
    }
  }
}

void draw_legend(SvgCanvas& canvas, const HeatMap& map, const HeatMapLayout& at, double x, double y) {
  constexpr int kSteps = 70, kTicks = 5;
  const double top = y + at.legend_top, left = x + at.left;
  canvas.text(left, top - 6, map.scale_title, {.size = kSmallFont, .bold = true});
  const bool one = !(map.scale.most > map.scale.least);
  for (int step = 0; step < kSteps; ++step)
    canvas.rect(left + step * kLegendWidth / kSteps, top, kLegendWidth / kSteps + 0.5, kLegendHeight,
                amount_colour(one ? 1 : (step + 0.5) / kSteps));
  for (int tick = 0; tick < (one ? 1 : kTicks); ++tick) {
    const double share = static_cast<double>(tick) / (kTicks - 1);
    canvas.line(left + share * kLegendWidth, top + kLegendHeight, left + share * kLegendWidth, top + kLegendHeight + 4,
                kGrey);
    canvas.text(left + share * kLegendWidth, top + kLegendHeight + 16, fmt::format("{:.4g}", map.scale.value_at(share)),
                {.size = kSmallFont, .anchor = Anchor::middle, .colour = kGrey});
  }
}

}  // namespace

SvgSize heat_map_size(const HeatMap& map) {
  check(map);
  return HeatMapLayout(map).size;
}

void draw_heat_map(SvgCanvas& canvas, double x, double y, const HeatMap& map) {
  check(map);
  const HeatMapLayout at(map);
  draw_titles(canvas, map, at, x, y);
  draw_labels(canvas, map, at, x, y);
  draw_cells(canvas, map, at, x, y);
  draw_legend(canvas, map, at, x, y);
}

}  // namespace engram

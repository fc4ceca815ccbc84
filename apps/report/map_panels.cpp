#include "apps/report/map_panels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "apps/report/chart_style.hpp"
#include "apps/report/ticks.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

constexpr double kThinnest = 0.5;  // points, of a column
constexpr double kPartGap = 5;     // points
constexpr double kLeastPart = 0.2;
constexpr double kOver = 0.1;    // points
constexpr double kSmall = 0.85;  // of the font: labels beside maps
constexpr int kShades = 64;      // few enough for neighbours to be one shape, too many to see the steps

void check_panel(const MapPanel& panel, std::size_t rows) {
  for (const MapPart* part : {&panel.left, &panel.right})
    if (part->values.size() != rows * part->columns)
      throw Error(text("maps: '", panel.title, "' must have ", rows, " x ", part->columns, " values, got ",
                       part->values.size()));
  if (rows * (panel.left.columns + panel.right.columns) == 0)
    throw Error(text("maps: '", panel.title, "' must have cells, got none"));
}

/// Where the parts of a panel lie in its width.
struct PartWidths {
  double left = 0, right = 0;

  PartWidths(const MapPanel& panel, double width) {
    const auto left_columns = static_cast<double>(panel.left.columns);
    const auto right_columns = static_cast<double>(panel.right.columns);
    if (right_columns == 0) {
      left = width;
    } else if (left_columns == 0) {
      right = width;
    } else {
      left = (width - kPartGap) * std::clamp(left_columns / (left_columns + right_columns), kLeastPart, 1 - kLeastPart);
      right = width - kPartGap - left;
    }
  }
};

/// Left of the first panel of each row, for the labels of rows.
double label_width(const MapPanels& maps, const FigurePage& page) {
  double widest = 0;
  for (const std::string& label : maps.rows) widest = std::max(widest, printed_width(label, page.font));
  return std::min(widest, page.width / 5) + 2.4 * page.font;
}

double cells_width(double labels, const FigurePage& page, std::size_t columns) {
  return (page.width - labels) / static_cast<double>(columns) - page.font;
}

class MapPanelsDrawing {
 public:
  MapPanelsDrawing(const MapPanels& maps, const FigurePage& page);
  std::string document(const std::string& name);

 private:
  void draw_panel(SvgCanvas& canvas, std::size_t index) const;
  void draw_part(SvgCanvas& canvas, const MapPart& part, double x, double y, double width) const;
  void draw_part_labels(SvgCanvas& canvas, const MapPart& part, const std::string& title, double x, double width,
                        double y) const;
  void draw_rows(SvgCanvas& canvas, double x, double y) const;
  void draw_scale(SvgCanvas& canvas, double y) const;
  double scale_left() const { return labels_ + printed_width(maps_.scale_title, kSmall * page_.font) + page_.font; }
  double scale_width() const { return std::min(120.0, (page_.width - scale_left()) / 2); }
  std::string parts_text() const { return text("left: ", maps_.left_title, "; right: ", maps_.right_title); }

  const MapPanels& maps_;
  const FigurePage& page_;
  PanelGrid grid_;
  bool titles_fit_ = true;          // below each part
  bool parts_beside_scale_ = true;  // where they do not; else below it
  double labels_ = 0;               // left of the first panel of each row
  double width_ = 0, height_ = 0;   // of the cells of a panel
  double row_ = 0;                  // of panels, with title and labels
};

MapPanelsDrawing::MapPanelsDrawing(const MapPanels& maps, const FigurePage& page)
    : maps_(maps), page_(page), grid_(page, maps.panels.size()) {
  labels_ = label_width(maps, page);
  width_ = cells_width(labels_, page, grid_.columns());
  if (width_ < 2 * page.font)
    throw UsageError(text("figure: a map must have room beside its labels, got ", std::lround(page.width),
                          " points for ", grid_.columns(), " of them with letters of ", page.font,
                          "\n  --width makes it larger, --font and --columns leave more of it"));
  height_ = page.height > 0 ? page.height : std::clamp(1.2 * width_, 60.0, 240.0);
  for (const MapPanel& panel : maps.panels) {
    const PartWidths widths(panel, width_);
    const auto fits = [&](const std::string& title, double width) {
      return width == 0 || printed_width(title, kSmall * page.font) < width + kPartGap;
    };
    titles_fit_ = titles_fit_ && fits(maps.left_title, widths.left) && fits(maps.right_title, widths.right);
  }
  parts_beside_scale_ =
      scale_left() + scale_width() + printed_width(parts_text(), kSmall * page.font) + 2 * page.font < page.width;
  row_ = height_ + (titles_fit_ ? 4.8 : 3.8) * page.font;
}

void MapPanelsDrawing::draw_part(SvgCanvas& canvas, const MapPart& part, double x, double y, double width) const {
  const auto cell_width = width / static_cast<double>(part.columns);
  const double cell_height = height_ / static_cast<double>(maps_.rows.size());
  const auto shade_of = [&](std::size_t row, std::size_t column) {
    const double value = part.values[row * part.columns + column];
    return std::isnan(value) ? -1 : static_cast<int>(std::lround(maps_.scale.share_of(value) * kShades));
  };
  // The lightest is the ground, so that most of a map need not be drawn.
  canvas.path(fmt::format("M{},{}h{}v{}h{}z", svg_number(x), svg_number(y), svg_number(width), svg_number(height_),
                          svg_number(-width)),
              amount_colour(0));
  std::map<int, std::string> shapes;  // by shade
  for (std::size_t row = 0; row < maps_.rows.size(); ++row)
    for (std::size_t column = 0, next = 0; column < part.columns; column = next) {
      const int shade = shade_of(row, column);
      next = column + 1;
      while (next < part.columns && shade_of(row, next) == shade) ++next;
      if (shade <= 0) continue;
      // Neighbours lie over each other by a little: rounded edges would let the ground through.
      const double left = x + cell_width * static_cast<double>(column),
                   top = y + cell_height * static_cast<double>(row);
      const double wide = std::min(cell_width * static_cast<double>(next - column) + kOver, x + width - left);
      const double high = std::min(cell_height + kOver, y + height_ - top);
      shapes[shade] += fmt::format("M{},{}h{}v{}h{}z", svg_number(left), svg_number(top), svg_number(wide),
                                   svg_number(high), svg_number(-wide));
    }
  for (const auto& [shade, path] : shapes) canvas.path(path, amount_colour(static_cast<double>(shade) / kShades));
}

void MapPanelsDrawing::draw_part_labels(SvgCanvas& canvas, const MapPart& part, const std::string& title, double x,
                                        double width, double y) const {
  const double font = kSmall * page_.font;
  if (part.columns == 0) return;
  const bool both = printed_width(part.first + part.last, font) + font < width;
  if (both) canvas.text(x, y + 1.2 * font, part.first, {.size = font, .colour = kBlack});
  canvas.text(x + width, y + 1.2 * font, part.last, {.size = font, .anchor = Anchor::end, .colour = kBlack});
  if (titles_fit_)
    canvas.text(x + width / 2, y + 2.5 * font, title, {.size = font, .anchor = Anchor::middle, .colour = kBlack});
}

void MapPanelsDrawing::draw_rows(SvgCanvas& canvas, double x, double y) const {
  const double font = kSmall * page_.font, cell = height_ / static_cast<double>(maps_.rows.size());
  const auto stride = static_cast<std::size_t>(std::max(1.0, std::ceil(1.1 * font / cell)));
  for (std::size_t row = 0; row < maps_.rows.size(); row += stride)
    canvas.text(x - 0.4 * page_.font, y + cell * (static_cast<double>(row) + 0.5) + 0.35 * font, maps_.rows[row],
                {.size = font, .anchor = Anchor::end, .colour = kBlack});
  canvas.text(page_.font, y + height_ / 2, maps_.row_title,
              {.size = page_.font, .anchor = Anchor::middle, .colour = kBlack, .upwards = true});
}

void MapPanelsDrawing::draw_panel(SvgCanvas& canvas, std::size_t index) const {
  const MapPanel& panel = maps_.panels[index];
  const std::size_t column = index % grid_.columns(), row = index / grid_.columns();
  const double x = labels_ + static_cast<double>(column) * (width_ + page_.font);
  const double top = title_height(page_) + static_cast<double>(row) * row_;
  const double y = top + 1.9 * page_.font;
  canvas.text(x + width_ / 2, top + 1.3 * page_.font, panel.title,
              {.size = page_.font, .anchor = Anchor::middle, .colour = kBlack});
  const PartWidths widths(panel, width_);
  const double right = x + width_ - widths.right;
  if (widths.left > 0) draw_part(canvas, panel.left, x, y, widths.left);
  if (widths.right > 0) draw_part(canvas, panel.right, right, y, widths.right);
  draw_part_labels(canvas, panel.left, maps_.left_title, x, widths.left, y + height_);
  draw_part_labels(canvas, panel.right, maps_.right_title, right, widths.right, y + height_);
  if (column == 0) draw_rows(canvas, x, y);
}

/// Values with a number below the scale: powers of ten, or other round ones.
std::vector<double> scale_ticks(const Scale& scale) {
  if (!(scale.most > scale.least)) return {scale.most};
  if (scale.logarithmic) return powers_of_ten_between(scale.least, scale.most);
  return ticks_between(scale.least, scale.most, tick_step(scale.most - scale.least, 4));
}

void MapPanelsDrawing::draw_scale(SvgCanvas& canvas, double y) const {
  constexpr int kSteps = 64;
  const double font = kSmall * page_.font, high = 0.7 * page_.font;
  const double left = scale_left(), width = scale_width();
  const bool one = !(maps_.scale.most > maps_.scale.least);
  canvas.text(labels_, y + high, maps_.scale_title, {.size = font, .colour = kBlack});
  for (int step = 0; step < kSteps; ++step)
    canvas.path(fmt::format("M{},{}h{}v{}h{}z", svg_number(left + step * width / kSteps), svg_number(y),
                            svg_number(width / kSteps + 0.1), svg_number(high), svg_number(-width / kSteps - 0.1)),
                amount_colour(one ? 1 : (step + 0.5) / kSteps));
  double taken = -INFINITY;  // up to there a number stands
  for (const double value : scale_ticks(maps_.scale)) {
    const double at = left + maps_.scale.share_of(value) * width, half = printed_width(axis_number(value), font) / 2;
    canvas.line(at, y + high, at, y + high + 0.2 * font, kBlack, 0.6);
    if (at - half < taken) continue;
    taken = at + half + 0.4 * font;
    canvas.text(at, y + high + 1.3 * font, axis_number(value),
                {.size = font, .anchor = Anchor::middle, .colour = kBlack});
  }
  if (titles_fit_) return;
  const double end = page_.width - 0.6 * page_.font, line = parts_beside_scale_ ? y + high : y + high + 3 * font;
  canvas.text(end, line, parts_text(), {.size = font, .anchor = Anchor::end, .colour = kBlack});
}

std::string MapPanelsDrawing::document(const std::string& name) {
  const double panels = title_height(page_) + row_ * static_cast<double>(grid_.rows());
  const double scale = panels + 0.4 * page_.font;
  const double bottom = scale + (titles_fit_ || parts_beside_scale_ ? 2.2 : 3.8) * page_.font;
  SvgCanvas canvas = SvgCanvas::on_paper({page_.width, bottom + note_height(page_)}, name);
  draw_title(canvas, page_);
  for (std::size_t index = 0; index < maps_.panels.size(); ++index) draw_panel(canvas, index);
  draw_scale(canvas, scale);
  draw_note(canvas, page_, bottom);
  return canvas.document();
}

}  // namespace

FigurePage page_for_titles(const MapPanels& maps, FigurePage page) {
  if (page.columns > 0) return page;
  double widest = 0;
  for (const MapPanel& panel : maps.panels) widest = std::max(widest, printed_width(panel.title, page.font));
  page.columns = PanelGrid(page, maps.panels.size()).columns();
  const double labels = label_width(maps, page);
  while (page.columns > 1 && cells_width(labels, page, page.columns) < widest) --page.columns;
  // Rows of the same length, where that is so: four maps are two and two, not three and one.
  const std::size_t rows = (maps.panels.size() + page.columns - 1) / page.columns;
  page.columns = (maps.panels.size() + rows - 1) / rows;
  return page;
}

std::size_t most_map_columns(const FigurePage& page, std::size_t panels) {
  const PanelGrid grid(page, panels);
  return static_cast<std::size_t>(std::max(8.0, 0.8 * grid.panel_width() / kThinnest));
}

std::string figure_of_maps(const MapPanels& maps, const FigurePage& page, const std::string& name) {
  if (maps.panels.empty()) throw Error("maps: there must be panels, got none");
  for (const MapPanel& panel : maps.panels) check_panel(panel, maps.rows.size());
  return MapPanelsDrawing(maps, page).document(name);
}

}  // namespace engram

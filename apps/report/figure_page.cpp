#include "apps/report/figure_page.hpp"

#include <algorithm>
#include <utility>

#include "apps/report/chart_style.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

constexpr double kLineHeight = 1.35, kNoteSize = 0.85;  // of the font
constexpr std::size_t kMostColumns = 4;

double note_font(const FigurePage& page) { return kNoteSize * page.font; }

/// Words in lines that are no wider than this, as far as that can be.
std::vector<std::string> lines_of(const std::string& words, double width, double font) {
  std::vector<std::string> lines;
  std::string line;
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find(' ', begin), words.size());
    const std::string word = words.substr(begin, end - begin);
    begin = end + 1;
    if (!line.empty() && printed_width(line + " " + word, font) > width) {
      lines.push_back(std::exchange(line, ""));
    }
    line += (line.empty() ? "" : " ") + word;
  }
  if (!line.empty()) lines.push_back(line);
  return lines;
}

struct LegendItem {
  std::string name;
  std::size_t index = 0;  // of the series
  double x = 0, width = 0;
  std::size_t row = 0;
};

/// The names of the series, in rows.
class PlotLegend {
 public:
  PlotLegend(const std::vector<Plot>& plots, const FigurePage& page) : font_(page.font), bars_(plots.front().bars) {
    for (const Plot& plot : plots)
      for (std::size_t i = items_.size(); i < plot.series.size(); ++i)
        items_.push_back({.name = plot.series[i].name, .index = i});
    if (items_.size() < 2) items_.clear();
    double at = 0;
    for (LegendItem& item : items_) {
      item.width = kMark * font_ + 0.5 * font_ + printed_width(item.name, font_) + 1.2 * font_;
      if (at > 0 && at + item.width > page.width) {
        at = 0;
        ++rows_;
      }
      item.row = rows_;
      item.x = at;
      at += item.width;
    }
    if (!items_.empty()) ++rows_;
  }
  double height() const { return rows_ == 0 ? 0 : (static_cast<double>(rows_) * kLineHeight + 0.6) * font_; }
  void draw(SvgCanvas& canvas, const std::vector<Plot>& plots, double top) const;

 private:
  static constexpr double kMark = 2.6;  // of the font
  double font_;
  bool bars_;
  std::size_t rows_ = 0;
  std::vector<LegendItem> items_;
};

void PlotLegend::draw(SvgCanvas& canvas, const std::vector<Plot>& plots, double top) const {
  for (const LegendItem& item : items_) {
    const SeriesLook look = series_look(item.index);
    const double left = item.x + 0.4 * font_,
                 y = top + ((static_cast<double>(item.row) + 0.7) * kLineHeight + 0.3) * font_;
    const double middle = y - 0.35 * font_;
    const auto is_joined = [&item](const Plot& plot) {
      return item.index < plot.series.size() && plot.series[item.index].joined;
    };
    if (bars_) {
      canvas.rect(left + kMark * font_ - font_, middle - 0.4 * font_, 0.8 * font_, 0.8 * font_, look.colour);
    } else {
      if (std::ranges::any_of(plots, is_joined))
        canvas.polyline({{left, middle}, {left + kMark * font_, middle}},
                        {.colour = look.colour, .width = 1.2, .dash = look.dash});
      draw_marker(canvas, left + kMark * font_ / 2, middle, 4.2, look);
    }
    canvas.text(left + (kMark + 0.5) * font_, y, item.name, {.size = font_, .colour = kBlack});
  }
}

}  // namespace

PanelGrid::PanelGrid(const FigurePage& page, std::size_t panels)
    : columns_(std::min(panels, page.columns == 0 ? kMostColumns : page.columns)) {
  columns_ = std::max<std::size_t>(1, columns_);
  rows_ = (panels + columns_ - 1) / columns_;
  width_ = page.width / static_cast<double>(columns_);
}

double title_height(const FigurePage& page) { return page.title.empty() ? 0 : 2.1 * page.font; }

double note_height(const FigurePage& page) {
  const auto lines = static_cast<double>(lines_of(page.note, page.width, note_font(page)).size());
  return lines == 0 ? 0 : (lines * kLineHeight + 0.8) * note_font(page);
}

void draw_title(SvgCanvas& canvas, const FigurePage& page) {
  if (page.title.empty()) return;
  canvas.text(page.width / 2, 1.4 * page.font, page.title,
              {.size = 1.15 * page.font, .anchor = Anchor::middle, .colour = kBlack, .bold = true});
}

void draw_note(SvgCanvas& canvas, const FigurePage& page, double top) {
  double y = top;
  for (const std::string& line : lines_of(page.note, page.width, note_font(page))) {
    y += kLineHeight * note_font(page);
    canvas.text(0.4 * page.font, y, line, {.size = note_font(page), .colour = kGrey});
  }
}

std::string figure_of_plots(const std::vector<Plot>& plots, const FigurePage& page, const std::string& name) {
  if (plots.empty()) throw Error("figure: there must be plots, got none");
  const PanelGrid grid(page, plots.size());
  const PlotLegend legend(plots, page);
  const double top = title_height(page) + legend.height();
  const double each =
      page.height > 0 ? page.height : std::max(12 * page.font, std::min(0.66 * grid.panel_width(), 260.0));
  const double bottom = top + each * static_cast<double>(grid.rows());
  SvgCanvas canvas = SvgCanvas::on_paper({page.width, bottom + note_height(page)}, name);
  draw_title(canvas, page);
  legend.draw(canvas, plots, title_height(page));
  for (std::size_t i = 0; i < plots.size(); ++i) {
    const std::size_t column = i % grid.columns(), row = i / grid.columns();
    draw_plot(canvas,
              {.x = static_cast<double>(column) * grid.panel_width(),
               .y = top + static_cast<double>(row) * each,
               .width = grid.panel_width(),
               .height = each,
               .font = page.font},
              plots[i]);
  }
  draw_note(canvas, page, bottom);
  return canvas.document();
}

}  // namespace engram

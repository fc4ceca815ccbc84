#pragma once
/// A figure made from runs: what is drawn, in words and numbers, and the drawing.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/report/figure_page.hpp"

namespace engram {

/// How a figure looks; what is not given is as the study of it has it.
struct FigureStyle {
  FigurePage page;     ///< its note is made by svg_of()
  bool plain = false;  ///< nothing is written below the panels
  bool log_x = false, log_y = false;
  std::string x_label, y_label;  ///< of the axes; empty: what is drawn, in words. The second is of all panels
  std::optional<PlotRange> y_range;
};

struct Figure {
  FigureStyle style;
  std::vector<Plot> panels;
  std::string what;                   ///< a line: what the points are, and how far they spread
  std::vector<std::string> left_out;  ///< what is not drawn and why, a line each
};

/// Sets axes as the style has them. Points that a logarithmic axis has no place for are left out, and told. Throws
/// UsageError where nothing is left to draw.
Figure styled(Figure figure, const FigureStyle& style);

/// What is drawn: every point of a figure with few of them, else a line for each series; then what is left out.
std::string table_of(const Figure& figure);
/// Lines `panel,series,x,y,least,most,x_least,x_most,runs,label`: every point, panel being the title of its y axis.
/// least to x_most are empty where there is no spread.
std::string csv_of(const Figure& figure);
nlohmann::json json_of(const Figure& figure);
std::string svg_of(const Figure& figure);

}  // namespace engram

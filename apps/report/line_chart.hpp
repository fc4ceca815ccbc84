#pragma once
/// Lines over a common axis of numbers, with a grid and a legend.

#include <string>
#include <vector>

#include "apps/report/svg_canvas.hpp"

namespace engram {

struct LineChart {
  struct Line {
    std::string name;
    std::vector<SvgCanvas::Point> points;  ///< (x, y) as numbers of the axes, from left to right; not empty
    bool main = false;                     ///< black and thicker than the others
  };

  std::string title;
  std::string x_title, y_title;      ///< of the axes, with units
  std::vector<Line> lines;           ///< the others get their colours in this order
  bool from_zero = true;             ///< the y axis begins at 0; otherwise at the tick below the lowest point
  double width = 560, height = 300;  ///< pixels of the plot alone
};

/// What draw_line_chart() needs.
SvgSize line_chart_size(const LineChart& chart);
/// With its top left corner at (x, y). The x axis begins at the first point. Throws Error without
/// lines or for one without points.
void draw_line_chart(SvgCanvas& canvas, double x, double y, const LineChart& chart);

}  // namespace engram

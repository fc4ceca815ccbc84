#pragma once
/// Upright bars with a name below each, over an axis of numbers from 0 on.

#include <string>
#include <vector>

#include "apps/report/svg_canvas.hpp"

namespace engram {

struct BarChart {
  struct Bar {
    std::string name;
    double value = 0;  ///< 0 or above
  };

  std::string title;
  std::string x_title, y_title;  ///< of the axes, with units
  std::vector<Bar> bars;         ///< from left to right
  double height = 260;           ///< pixels of the plot alone
};

/// What draw_bar_chart() needs.
SvgSize bar_chart_size(const BarChart& chart);
/// With its top left corner at (x, y). Names that would touch are left out. Throws Error without bars, and for one
/// whose value is below 0 or no number.
void draw_bar_chart(SvgCanvas& canvas, double x, double y, const BarChart& chart);

}  // namespace engram

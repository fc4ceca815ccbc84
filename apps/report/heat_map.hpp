#pragma once
/// A table of numbers as coloured cells, with named axes and a legend of the colours.

#include <string>
#include <vector>

#include "apps/report/colour_scale.hpp"
#include "apps/report/svg_canvas.hpp"

namespace engram {

struct HeatMap {
  std::string title;
  std::string note;                     ///< a line below the title; may be empty
  std::string row_title, column_title;  ///< of the axes
  std::vector<std::string> rows, columns;
  std::vector<double> values;                ///< row by row; NaN: no value, the cell is grey
  std::vector<std::string> cell_texts;       ///< written in the cells; empty: nothing is
  std::vector<std::string> tooltips;         ///< of the cells; empty: none
  std::vector<std::string> row_notes;        ///< right of each row; empty: none
  std::string row_note_title;                ///< above them
  std::size_t divider = 0;                   ///< so many columns stand left of a gap; 0: there is none
  std::string left_title, right_title;       ///< of the columns on both sides of the gap
  Scale scale;                               ///< of the colours
  std::string scale_title;                   ///< with the unit
  double cell_width = 52, cell_height = 24;  ///< pixels
};

/// What draw_heat_map() needs. Both throw Error when the lists do not have the lengths that rows and columns ask for.
SvgSize heat_map_size(const HeatMap& map);
/// With its top left corner at (x, y). Labels of rows and columns that would touch are left out; neighbours of one
/// colour are one shape when they have neither text nor tooltip, so that maps of thousands of columns stay small.
void draw_heat_map(SvgCanvas& canvas, double x, double y, const HeatMap& map);

}  // namespace engram

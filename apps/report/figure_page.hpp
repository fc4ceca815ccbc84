#pragma once
/// A figure of a paper: panels side by side with one legend, a title and a line below it, as one drawing.

#include <cstddef>
#include <string>
#include <vector>

#include "apps/report/plot.hpp"

namespace engram {

/// Lengths in points (1/72 inch).
struct FigurePage {
  double width = 340;       ///< of the whole figure: 120 mm
  double height = 0;        ///< of a row of panels; 0: what suits their width
  double font = 8;          ///< size of the letters
  std::size_t columns = 0;  ///< panels side by side at most; 0: up to four
  std::string title;        ///< above the panels; may be empty
  std::string note;         ///< below them, in lines as wide as the figure; may be empty
};

/// So many panels in rows: what each gets of the page.
class PanelGrid {
 public:
  PanelGrid(const FigurePage& page, std::size_t panels);
  std::size_t columns() const { return columns_; }
  std::size_t rows() const { return rows_; }
  double panel_width() const { return width_; }

 private:
  std::size_t columns_, rows_;
  double width_;
};

/// Where the title ends, and what the note needs.
double title_height(const FigurePage& page);
double note_height(const FigurePage& page);
void draw_title(SvgCanvas& canvas, const FigurePage& page);
/// Below `top`.
void draw_note(SvgCanvas& canvas, const FigurePage& page, double top);

/// The drawing. There is a legend where there are several series. Throws Error as draw_plot() does, and without plots.
std::string figure_of_plots(const std::vector<Plot>& plots, const FigurePage& page, const std::string& name);

}  // namespace engram

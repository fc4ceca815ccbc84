#pragma once
/// Maps of numbers side by side, with one scale of colours: as figures of papers show several heads.

#include <cstddef>
#include <string>
#include <vector>

#include "apps/report/colour_scale.hpp"
#include "apps/report/figure_page.hpp"

namespace engram {

/// Columns of a map, with what stands below their first and their last.
struct MapPart {
  std::size_t columns = 0;
  std::vector<double> values;  ///< [rows, columns]; NaN: none, nothing is drawn
  std::string first, last;
};

struct MapPanel {
  std::string title;
  MapPart left, right;  ///< a gap stands between them; either may have no columns
};

struct MapPanels {
  std::vector<MapPanel> panels;
  std::vector<std::string> rows;  ///< labels, from the top; those that would touch are left out
  std::string row_title, left_title, right_title;
  Scale scale;  ///< of the colours
  std::string scale_title;
};

/// The page with so many panels side by side that their titles do not touch, where it does not say itself how many. Of
/// the maps only titles and labels of rows are read.
FigurePage page_for_titles(const MapPanels& maps, FigurePage page);

/// How many columns a panel has room for, so that none is thinner than a printer shows.
std::size_t most_map_columns(const FigurePage& page, std::size_t panels);

/// The drawing. Each part is as wide as its share of the panel's columns, a part with any a fifth at least. Throws
/// Error for panels without columns, and where values are not as many as rows and columns ask for; UsageError
/// for a page that the labels fill.
std::string figure_of_maps(const MapPanels& maps, const FigurePage& page, const std::string& name);

}  // namespace engram

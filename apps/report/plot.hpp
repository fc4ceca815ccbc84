#pragma once
/// Plots as papers have them: lines with markers and whiskers, bars, points with labels; over axes of numbers, of
/// ratios or of names. Colours can be told apart by the colour-blind, and on paper by dashes and markers.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/report/plot_axis.hpp"
#include "apps/report/svg_canvas.hpp"

namespace engram {

struct PlotPoint {
  double x = 0, y = 0;
  std::optional<PlotRange> across, up;  ///< how far it spreads, in x and in y
  std::int64_t runs = 1;                ///< that it is the mean of
  std::string label = {};               ///< beside the point
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;  ///< in the order in which the line goes
  bool joined = true;             ///< by a line
};

struct Plot {
  std::string title;  ///< above it; may be empty
  PlotAxis x, y;
  std::vector<PlotSeries> series;  ///< at least one point in all; the same place in other panels is the same series
  bool bars = false;               ///< upright ones from the bottom, side by side where x has several series
  bool bands = false;              ///< spreads as an area along the line instead of whiskers
};

/// Of one plot of a page; all lengths in points (1/72 inch).
struct PlotFrame {
  double x = 0, y = 0, width = 0, height = 0;  ///< all of it, with its labels
  double font = 8;
};

/// How series number `index` is drawn, the first being 0.
struct SeriesLook {
  std::string_view colour, dash;  ///< dash as Stroke has it
  std::size_t marker = 0;
};
SeriesLook series_look(std::size_t index);
/// A marker with its middle at (x, y), nearly `size` wide.
void draw_marker(SvgCanvas& canvas, double x, double y, double size, const SeriesLook& look,
                 std::string_view tooltip = {});

/// How wide Helvetica sets a text, a little more: within a few hundredths, where text_width() is what is safe in every
/// font.
double printed_width(std::string_view text, double size);

/// Throws Error for a plot without points, for what is no number, and as AxisScale does; UsageError for a frame that
/// its labels fill.
void draw_plot(SvgCanvas& canvas, const PlotFrame& frame, const Plot& plot);

}  // namespace engram

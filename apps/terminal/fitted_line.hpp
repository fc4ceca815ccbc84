#pragma once
/// A line of progress in as many columns as there are: what matters most is there first.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace engram {

/// Shown as `label value unit`; label and unit, which may be empty, are dim where there are colours.
struct LinePart {
  std::string label, value, unit = {};
  bool ahead = false;  ///< shown before the others, whatever its importance
};

struct LineStyle {
  std::int64_t columns = 80;    ///< at most; below 1: the line is empty
  bool colours = false;         ///< with sequences for them, which take no columns
  std::size_t essential = 1;    ///< parts for which the first one does without its label and unit, if it must
  std::optional<double> share;  ///< done, from 0 to 1: a bar of it, where there is room beside all parts
};

/// Of the parts, which are in the order of their importance, as many as there is room for; of the first one at least
/// the beginning of its value. What is no printable character becomes "?".
std::string fitted_line(std::span<const LinePart> parts, const LineStyle& style);

/// Of a time to come or gone by: 0:17, 4:00:00.
std::string clock_text(double seconds);

}  // namespace engram

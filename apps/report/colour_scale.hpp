#pragma once
/// Colours for numbers: light to dark for amounts, so that print and colour-blind readers see the order too; and
/// several hues for lines that lie near each other.

#include <string>
#include <string_view>

namespace engram {

/// "#rrggbb". `share` in [0, 1], clamped: 0 is the lightest.
std::string amount_colour(double share);
/// What can be read on that colour: black or white.
std::string_view text_colour_on(double share);
/// For line `share` of the way from the first to the last; each is dark enough on white.
std::string line_colour(double share);

/// Where numbers lie between two ends, by difference or by ratio.
struct Scale {
  double least = 0, most = 1;
  bool logarithmic = false;  ///< needs ends above 0

  /// In [0, 1], what lies outside being at the end; 1 when both ends are equal.
  double share_of(double value) const;
  /// The inverse.
  double value_at(double share) const;
};

}  // namespace engram

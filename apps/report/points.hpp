#pragma once
/// Points of a line, and no more of them than can be seen.

#include <cstddef>
#include <span>
#include <vector>

namespace engram {

/// From left to right; a y that is no number is a gap.
struct Points {
  std::vector<double> x, y;  ///< as many of each

  void add(double at, double value) {
    x.push_back(at);
    y.push_back(value);
  }
};

/// A page shows so many points of a line at most.
inline constexpr std::size_t kMostPoints = 4000;

/// Places of at most `most` of the values, in their order: all of them, or else the first, the last, and the lowest and
/// the highest of stretches of equal numbers of values, so that no peak is lost. `most`: at least 4.
std::vector<std::size_t> kept_places(std::span<const double> y, std::size_t most);
/// The points at kept_places().
Points decimated(const Points& points, std::size_t most = kMostPoints);

}  // namespace engram

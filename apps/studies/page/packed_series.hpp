#pragma once
/// Series of numbers as the script of a page reads them: few bytes each, and no more points than a screen can show.

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

namespace engram {

/// Points of a line, from left to right; a y that is no number is a gap.
struct Points {
  std::vector<double> x, y;  ///< as many of each

  void add(double at, double value) {
    x.push_back(at);
    y.push_back(value);
  }
};

/// A page shows so many points of a line at most.
inline constexpr std::size_t kMostPoints = 4000;

/// At most `most` of the points, in their order: all of them, or else the first, the last, and the lowest and the
/// highest of stretches of equal numbers of points, so that no peak is lost. `most`: at least 4.
Points decimated(const Points& points, std::size_t most = kMostPoints);

/// Base64 of f32, lowest byte first. What is too large for f32 becomes infinite.
std::string packed_floats(std::span<const double> numbers);
/// Base64 of bytes.
std::string packed_bytes(std::span<const std::uint8_t> numbers);

/// {"x", "y"} of the decimated points, x and y packed.
nlohmann::json json_of(const Points& points);

}  // namespace engram

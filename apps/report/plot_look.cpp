#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>

#include "apps/report/plot.hpp"

namespace engram {
namespace {

/// Of Okabe and Ito, "Color Universal Design" (2008), without the yellow, which is too light for lines on white.
constexpr std::array<std::string_view, 7> kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                   "#000000", "#56b4e9", "#e69f00"};
constexpr std::array<std::string_view, 5> kDashes{"", "5 2", "1.5 1.5", "6 1.5 1.5 1.5", "3 1.5"};
constexpr std::size_t kMarkers = 6;

/// The corners of a regular figure, the first one at `turn` (radians from the right, downwards).
std::vector<SvgCanvas::Point> corners(double x, double y, double radius, int count, double turn) {
  std::vector<SvgCanvas::Point> all;
  for (int i = 0; i < count; ++i) {
    const double angle = turn + 2 * std::numbers::pi * i / count;
    all.emplace_back(x + radius * std::cos(angle), y + radius * std::sin(angle));
  }
  return all;
}

/// Of the font's size, of one character of ASCII: by groups, as its metrics have them.
double letter_width(char letter) {
  if (std::string_view("ijl|'.,:;!It/f[]()r-").find(letter) != std::string_view::npos) return 0.3;
  if (std::string_view("mwMW%@").find(letter) != std::string_view::npos) return 0.88;
  return letter >= 'A' && letter <= 'Z' ? 0.7 : letter == ' ' ? 0.28 : 0.556;
}

}  // namespace

double printed_width(std::string_view text, double size) {
  constexpr double kSpare = 1.05;
  double width = 0;
  for (const char letter : text) {
    const auto byte = static_cast<std::uint8_t>(letter);
    // Of what is no ASCII each character counts as one that is wide.
    if (byte < 0x80)
      width += letter_width(letter);
    else if ((byte & 0xC0) != 0x80)
      width += 0.8;
  }
  return kSpare * width * size;
}

SeriesLook series_look(std::size_t index) {
  return {
      .colour = kColours[index % kColours.size()], .dash = kDashes[index % kDashes.size()], .marker = index % kMarkers};
}

void draw_marker(SvgCanvas& canvas, double x, double y, double size, const SeriesLook& look, std::string_view tooltip) {
  constexpr double kUp = -std::numbers::pi / 2;
  const double radius = size / 2;
  switch (look.marker) {
    case 0:
      return canvas.circle(x, y, radius, look.colour, tooltip);
    case 1:
      return canvas.polygon(corners(x, y, 1.2 * radius, 4, kUp / 2), look.colour, 1, tooltip);
    case 2:
      return canvas.polygon(corners(x, y, 1.3 * radius, 3, kUp), look.colour, 1, tooltip);
    case 3:
      return canvas.polygon(corners(x, y, 1.3 * radius, 4, kUp), look.colour, 1, tooltip);
    case 4:
      return canvas.polygon(corners(x, y, 1.3 * radius, 3, -kUp), look.colour, 1, tooltip);
    default:
      return canvas.polygon(corners(x, y, 1.15 * radius, 5, kUp), look.colour, 1, tooltip);
  }
}

}  // namespace engram

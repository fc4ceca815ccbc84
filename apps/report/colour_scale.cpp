#include "apps/report/colour_scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

namespace engram {
namespace {

using Colour = std::array<double, 3>;  // red, green, blue, 0 to 255

constexpr Colour kAmounts[] = {{246, 243, 232}, {190, 219, 196}, {98, 174, 172}, {44, 112, 150}, {26, 44, 92}};
constexpr Colour kLines[] = {{205, 122, 25}, {190, 60, 95}, {112, 62, 160}, {30, 92, 170}, {18, 130, 100}};

Colour between(std::span<const Colour> stops, double share) {
  const double place = std::clamp(share, 0.0, 1.0) * static_cast<double>(stops.size() - 1);
  const auto below = std::min(static_cast<std::size_t>(place), stops.size() - 2);
  const double part = place - static_cast<double>(below);
  Colour colour{};
  for (std::size_t i = 0; i < colour.size(); ++i) colour[i] = (1 - part) * stops[below][i] + part * stops[below + 1][i];
  return colour;
}

std::string written(const Colour& colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", std::lround(colour[0]), std::lround(colour[1]), std::lround(colour[2]));
}

}  // namespace

std::string amount_colour(double share) { return written(between(kAmounts, share)); }

std::string_view text_colour_on(double share) {
  const Colour colour = between(kAmounts, share);
  // ITU-R BT.601: how bright a colour is to the eye.
  const double brightness = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2];
  return brightness > 140 ? "#1a1a1a" : "#ffffff";
}

std::string line_colour(double share) { return written(between(kLines, share)); }

double Scale::share_of(double value) const {
  if (!(most > least)) return 1;
  const double share = logarithmic ? std::log(std::max(value, least) / least) / std::log(most / least)
                                   : (value - least) / (most - least);
  return std::clamp(share, 0.0, 1.0);
}

double Scale::value_at(double share) const {
  return logarithmic ? least * std::pow(most / least, share) : least + (most - least) * share;
}

}  // namespace engram

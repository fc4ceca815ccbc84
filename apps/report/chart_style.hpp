#pragma once
/// What charts have in common: sizes in pixels, and colours.

#include <string_view>

#include "apps/report/svg_canvas.hpp"

namespace engram {

inline constexpr double kMargin = 16, kTitleFont = 16, kFont = 12, kLegendMark = 20;
inline constexpr std::string_view kGrey = "#5f5f5f", kGrid = "#e2e2e2", kBlack = "#1a1a1a";
using Anchor = TextStyle::Anchor;

}  // namespace engram

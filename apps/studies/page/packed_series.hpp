#pragma once
/// Series of numbers as the script of a page reads them: few bytes each, and no more points than a screen can show.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "apps/report/points.hpp"

namespace engram {

/// Base64 of f32, lowest byte first. What is too large for f32 becomes infinite.
std::string packed_floats(std::span<const double> numbers);
/// Base64 of bytes.
std::string packed_bytes(std::span<const std::uint8_t> numbers);

/// {"x", "y"} of the decimated points, x and y packed.
nlohmann::json json_of(const Points& points);

}  // namespace engram

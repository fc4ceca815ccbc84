#pragma once
/// What is shown of several seeds: their mean, and how far they spread.

#include <optional>
#include <string>
#include <vector>

#include "apps/report/plot.hpp"
#include "core/names.hpp"

namespace engram {

enum class SeedSpread : unsigned char {
  range,      ///< from the least to the most
  deviation,  ///< the mean less and plus one standard deviation, of a sample: over n - 1
  none
};
constexpr auto names_of(SeedSpread) {
  return std::to_array<Named<SeedSpread>>(
      {{SeedSpread::range, "range"}, {SeedSpread::deviation, "std"}, {SeedSpread::none, "none"}});
}

/// Of one number or more.
double seeds_mean(const std::vector<double>& numbers);
/// None of one number, and where none is wanted.
std::optional<PlotRange> seeds_spread(const std::vector<double>& numbers, SeedSpread spread);

/// "mean of 2 seeds, whiskers from the least to the most". `least`, `most`: seeds of a point. `mark`: what shows the
/// spread: "whiskers" or "bands".
std::string seeds_text(std::size_t least, std::size_t most, SeedSpread spread, const std::string& mark);

}  // namespace engram

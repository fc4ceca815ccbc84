#include "apps/studies/figures/seed_spread.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"

namespace engram {

double seeds_mean(const std::vector<double>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

std::optional<PlotRange> seeds_spread(const std::vector<double>& numbers, SeedSpread spread) {
  if (numbers.size() < 2 || spread == SeedSpread::none) return std::nullopt;
  const auto [least, most] = std::ranges::minmax(numbers);
  if (spread == SeedSpread::range) return PlotRange{least, most};
  const double mean = seeds_mean(numbers);
  double squares = 0;
  for (const double number : numbers) squares += (number - mean) * (number - mean);
  const double deviation = std::sqrt(squares / static_cast<double>(numbers.size() - 1));
  return PlotRange{mean - deviation, mean + deviation};
}

std::string seeds_text(std::size_t least, std::size_t most, SeedSpread spread, const std::string& mark) {
  if (most < 2) return "";
  std::string words = text("mean of ", least == most ? text(most) : text(least, " to ", most), " seeds");
  if (spread == SeedSpread::range) words += text(", ", mark, " from the least to the most");
  if (spread == SeedSpread::deviation) words += text(", ", mark, " of one standard deviation");
  return words;
}

}  // namespace engram

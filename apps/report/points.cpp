#include "apps/report/points.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace engram {

std::vector<std::size_t> kept_places(std::span<const double> y, std::size_t most) {
  std::vector<std::size_t> kept;
  const std::size_t count = y.size();
  if (count <= most) {
    kept.resize(count);
    std::iota(kept.begin(), kept.end(), std::size_t{0});
    return kept;
  }
  kept.push_back(0);
  // The first and the last stand by themselves; every stretch between them gives two.
  const std::size_t stretches = (most - 2) / 2, inner = count - 2;
  for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
    const std::size_t begin = 1 + inner * stretch / stretches, end = 1 + inner * (stretch + 1) / stretches;
    std::size_t lowest = begin, highest = begin;
    for (std::size_t at = begin; at < end; ++at) {
      // A gap is the lowest: it is shown, too.
      if (!(y[at] >= y[lowest])) lowest = at;
      if (y[at] > y[highest] || std::isnan(y[highest])) highest = at;
    }
    kept.push_back(std::min(lowest, highest));
    if (lowest != highest) kept.push_back(std::max(lowest, highest));
  }
  kept.push_back(count - 1);
  return kept;
}

Points decimated(const Points& points, std::size_t most) {
  if (points.x.size() <= most) return points;
  Points kept;
  for (const std::size_t at : kept_places(points.y, most)) kept.add(points.x[at], points.y[at]);
  return kept;
}

}  // namespace engram

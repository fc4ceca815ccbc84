#include "apps/studies/page/packed_series.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>

#include "apps/data/files/base64.hpp"
#include "core/files/json.hpp"

namespace engram {

Points decimated(const Points& points, std::size_t most) {
  const std::size_t count = points.x.size();
  if (count <= most) return points;
  Points kept;
  const auto keep = [&](std::size_t at) { kept.add(points.x[at], points.y[at]); };
  keep(0);
  // The first and the last stand by themselves; every stretch between them gives two.
  const std::size_t stretches = (most - 2) / 2, inner = count - 2;
  for (std::size_t stretch = 0; stretch < stretches; ++stretch) {
    const std::size_t begin = 1 + inner * stretch / stretches, end = 1 + inner * (stretch + 1) / stretches;
    std::size_t lowest = begin, highest = begin;
    for (std::size_t at = begin; at < end; ++at) {
      // A gap is the lowest: it is shown, too.
      if (!(points.y[at] >= points.y[lowest])) lowest = at;
      if (points.y[at] > points.y[highest] || std::isnan(points.y[highest])) highest = at;
    }
    keep(std::min(lowest, highest));
    if (lowest != highest) keep(std::max(lowest, highest));
  }
  keep(count - 1);
  return kept;
}

std::string packed_floats(std::span<const double> numbers) {
  std::string bytes;
  bytes.reserve(numbers.size() * 4);
  for (const double number : numbers) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(number));
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(bits >> shift & 0xff);
  }
  return data::base64_text(bytes);
}

std::string packed_bytes(std::span<const std::uint8_t> numbers) {
  return data::base64_text({reinterpret_cast<const char*>(numbers.data()), numbers.size()});
}

nlohmann::json json_of(const Points& points) {
  const Points kept = decimated(points);
  return {{"x", packed_floats(kept.x)}, {"y", packed_floats(kept.y)}};
}

}  // namespace engram

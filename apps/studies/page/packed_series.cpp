#include "apps/studies/page/packed_series.hpp"

#include <bit>

#include "apps/data/files/base64.hpp"
#include "core/files/json.hpp"

namespace engram {

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

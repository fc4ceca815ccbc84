#include "autograd/initializer.hpp"

#include <cmath>
#include <numbers>

#include "core/philox.hpp"

namespace engram {
namespace {

// FNV-1a, 64 bits: a fixed, documented function of the name.
std::uint64_t hash_of(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// In (0, 1): 32 random bits, centred so that neither end is reached.
double unit(std::uint32_t bits) { return (bits + 0.5) / 4294967296.0; }

}  // namespace

void Initializer::fill(void* data, DType dtype, std::int64_t count, std::uint64_t seed, std::string_view name,
                       std::int64_t first_number) const {
  const std::uint64_t drawn = stream != 0 ? stream : hash_of(name);
  dispatch_storage(dtype, "initializer", [&]<class T>() {
    T* out = static_cast<T*>(data);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t place = first_number + i;
      const bool is_fixed = place >= fixed_begin && place < fixed_end;
      if (kind == Kind::constant || is_fixed) {
        out[i] = T(static_cast<Compute<T>>(is_fixed ? fixed : value));
        continue;
      }
      const auto number = static_cast<std::uint64_t>(place);
      const PhiloxBlock block = philox({{static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32),
                                         static_cast<std::uint32_t>(drawn), static_cast<std::uint32_t>(drawn >> 32)}},
                                       static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32) ^ 0x1u);
      const double first = unit(block.word[0]);
      if (kind == Kind::uniform)
        out[i] = T(static_cast<Compute<T>>(mean + value * (2 * first - 1)));
      else  // Box and Muller, 1958: one of the two normals
        out[i] = T(static_cast<Compute<T>>(mean + value * std::sqrt(-2 * std::log(first)) *
                                                      std::cos(2 * std::numbers::pi * unit(block.word[1]))));
    }
  });
}

}  // namespace engram

#include "apps/run/weights/stored_floats.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "core/bf16.hpp"

namespace engram {
namespace {

// Stored elements may be unaligned.
template <class T>
T element(std::span<const std::byte> bytes, std::size_t index) {
  T value;
  std::memcpy(&value, bytes.data() + index * sizeof(T), sizeof(T));
  return value;
}

double value_at(std::span<const std::byte> stored, StoredFloat from, std::size_t index) {
  switch (from) {
    case StoredFloat::f16:
      return from_binary16(element<std::uint16_t>(stored, index));
    case StoredFloat::bf16:
      return static_cast<float>(element<bf16>(stored, index));
    case StoredFloat::f32:
      return element<float>(stored, index);
    default:
      return element<double>(stored, index);
  }
}

}  // namespace

std::optional<StoredFloat> stored_float(const SafetensorsFile& file, const std::string& name) {
  if (file.half_floats().contains(name)) return StoredFloat::f16;
  switch (file.tensors().at(name).dtype) {
    case DType::f32:
      return StoredFloat::f32;
    case DType::f64:
      return StoredFloat::f64;
    case DType::bf16:
      return StoredFloat::bf16;
    default:
      return std::nullopt;
  }
}

float from_binary16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16, exponent = bits >> 10 & 0x1fu, part = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | part << 13);
  if (exponent > 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | part << 13);
  const float value = std::ldexp(static_cast<float>(part), -24);
  return sign == 0 ? value : -value;
}

void read_floats(std::span<const std::byte> stored, StoredFloat from, std::size_t first, DType to,
                 std::span<std::byte> out) {
  dispatch_float(to, "import", [&]<class T>() {
    for (std::size_t i = 0; i < out.size() / sizeof(T); ++i) {
      const T value = static_cast<T>(value_at(stored, from, first + i));
      std::memcpy(out.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
}

}  // namespace engram

#pragma once
/// Elements of floating-point tensors in files, of any width, as f32 or f64.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "core/files/safetensors.hpp"

namespace engram {

enum class StoredFloat : std::uint8_t { f16, bf16, f32, f64 };

/// What the elements of a tensor of a file that lists half floats are; nothing for integers.
std::optional<StoredFloat> stored_float(const SafetensorsFile& file, const std::string& name);

/// The value of an IEEE binary16; exact, denormal numbers, infinities and NaNs included.
float from_binary16(std::uint16_t bits);

/// Fills `out` with elements of dtype `to` (f32 or f64), the first of them being element `first` of `stored`. Exact
/// unless f64 is read as f32, which rounds to nearest. Throws DTypeError for another dtype.
void read_floats(std::span<const std::byte> stored, StoredFloat from, std::size_t first, DType to,
                 std::span<std::byte> out);

}  // namespace engram

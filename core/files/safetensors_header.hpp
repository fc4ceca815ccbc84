#pragma once
/// The JSON header of a safetensors file (core/files/safetensors.hpp), to and from text. Private to core.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "core/files/stored_tensor.hpp"

namespace engram {

inline constexpr std::string_view kChecksumKey = "engram.checksum";
inline constexpr std::size_t kChecksumDigits = 8;

/// The value of the checksum entry: "crc32:" and eight digits.
std::string checksum_text(std::uint32_t crc);

struct SafetensorsHeader {
  Metadata metadata;  ///< with the checksum, if there is one
  std::map<std::string, StoredTensor, std::less<>> tensors;
  std::set<std::string, std::less<>> half_floats;  ///< those that are F16
};

/// The header's text for sources laid out in the given order, padded by blanks to a multiple of eight bytes. Its
/// checksum entry has the digits zero. Throws Error as write_safetensors does.
std::string make_safetensors_header(std::span<const TensorSource* const> tensors, const Metadata& metadata);

/// Where in a header's text the digits of the checksum entry stand, if it is written without escapes and is `value`,
/// "crc32:" and eight characters.
std::optional<std::size_t> find_checksum_digits(std::string_view header, std::string_view value);

/// Checks everything that can be checked without the data, of which there are `data_bytes` bytes. Throws FileError
/// with a message that begins with `file`.
SafetensorsHeader parse_safetensors_header(std::string_view header, std::size_t data_bytes, std::string_view file,
                                           HalfFloats half_floats = HalfFloats::refused);

}  // namespace engram

#pragma once
/// Numbers in the headers of data files: little-endian, of so many bytes.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace engram::data {

inline void put_number(std::string& out, std::uint64_t number, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xff);
}
/// The number at `offset`; the text must be long enough.
inline std::uint64_t take_number(std::string_view text, std::size_t offset, int bytes) {
  std::uint64_t number = 0;
  for (int i = bytes - 1; i >= 0; --i)
    number = number << 8 | static_cast<unsigned char>(text[offset + static_cast<std::size_t>(i)]);
  return number;
}

}  // namespace engram::data

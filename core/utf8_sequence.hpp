#pragma once
/// What is a character of UTF-8 (The Unicode Standard, table 3-7, well-formed byte sequences).

#include <cstddef>
#include <string_view>

namespace engram {

/// Whether a byte of a UTF-8 text begins a character.
constexpr bool is_utf8_start(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }

/// Bytes of the well-formed sequence at the beginning of `rest`, which is not empty; 0 if there is none.
inline std::size_t utf8_sequence_length(std::string_view rest) {
  const auto byte = [rest](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (rest.size() < length) return 0;
  // Only the second byte of four leads is narrower: against overlong forms, surrogates, and what is above U+10FFFF.
  const unsigned lowest = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
  const unsigned highest = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < lowest || byte(1) > highest) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (is_utf8_start(rest[i])) return 0;
  return length;
}

}  // namespace engram

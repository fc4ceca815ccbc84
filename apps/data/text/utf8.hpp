#pragma once
/// UTF-8 as the Unicode Standard defines it (table 3-7, well-formed byte sequences): no overlong forms, no surrogates,
/// nothing above U+10FFFF.

#include <cstddef>
#include <string>
#include <string_view>

#include "core/utf8_sequence.hpp"

namespace engram::data {

/// U+FFFD, for bytes that are no character, and what some programs put before the first line of a text.
inline constexpr std::string_view kReplacement = "\ufffd", kByteOrderMark = "\xef\xbb\xbf";

/// Where the first byte is that begins no well-formed sequence; the length of the text if it is UTF-8 throughout.
std::size_t find_invalid_utf8(std::string_view text);

using engram::is_utf8_start;

/// Bytes of UTF-8 that arrive in pieces which may end inside a character.
class Utf8Pieces {
 public:
  /// The characters that are complete now; U+FFFD for bytes that can become none.
  std::string add(std::string_view bytes);
  /// U+FFFD if the bytes ended inside a character; else nothing.
  std::string finish();

 private:
  std::string held_;  // the beginning of a character
};

}  // namespace engram::data

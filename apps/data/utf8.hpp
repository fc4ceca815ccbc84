#pragma once
/// UTF-8 as the Unicode Standard defines it (table 3-7, well-formed byte sequences): no overlong forms, no surrogates,
/// nothing above U+10FFFF.

#include <cstddef>
#include <string_view>

namespace engram::data {

/// Where the first byte is that begins no well-formed sequence; the length of the text if it is UTF-8 throughout.
std::size_t find_invalid_utf8(std::string_view text);

}  // namespace engram::data

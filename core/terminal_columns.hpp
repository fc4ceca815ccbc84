#pragma once
/// How wide terminals and texts on them are.

#include <unistd.h>

#include <cstdint>
#include <string_view>

namespace engram {

/// Of the terminal that a file descriptor is; where it does not say COLUMNS, and 80 without that. Asked anew each time:
/// windows change.
std::int64_t terminal_columns(int descriptor = STDERR_FILENO);

/// At least as many columns as a terminal takes for the text, which is UTF-8: one for each character below U+1100, none
/// of which is wider, and two for each of the others.
std::int64_t columns_of(std::string_view text);

}  // namespace engram

#pragma once
/// Messages for people in lines that a terminal need not cut in the middle of a word.

#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace engram {

/// terminal_columns() of a stream, at least 40; 0: it is no terminal. Messages are not wrapped then: in a file or pipe
/// a line is searched for as it is.
std::int64_t message_columns(int descriptor = STDERR_FILENO);

/// A message in UTF-8 whose longer lines go on in lines of their own, two blanks further in than they begin, each of at
/// most `columns` columns where its words allow it: no word is ever cut, so that names and paths stay what they are.
/// Lines that fit stay as they are; of 0 columns all do. Columns are columns_of().
std::string wrapped_message(std::string_view message, std::int64_t columns);

}  // namespace engram

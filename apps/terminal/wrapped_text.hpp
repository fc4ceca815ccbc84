#pragma once
/// Text for people in lines that are not wider than what shows them.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace engram {

/// Columns of what standard output is shown on: those of its terminal; where it is none, COLUMNS of the environment,
/// else 80. At least 40.
std::size_t output_columns();

/// Parts in lines of at most `width` columns, all but the first with so many less, with blanks between the parts of a
/// line. Only a part that is wider by itself is cut, behind a comma or slash where it has one. No parts: an empty line.
std::vector<std::string> wrapped_parts(const std::vector<std::string>& parts, std::size_t width, std::size_t less = 0);

/// Wraps the words of a text, which are ASCII. Its own line ends stay, other white space does not.
std::vector<std::string> wrapped_text(std::string_view written, std::size_t width);

/// Lines below each other, all but the first behind `indent` blanks; each has its line end.
std::string hanging(const std::vector<std::string>& lines, std::size_t indent);

}  // namespace engram

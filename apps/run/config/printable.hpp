#pragma once
/// Text of files and of the command line in messages.

#include <string>
#include <string_view>

namespace engram {

/// For messages: bytes that are no text or would move a terminal's cursor as \x1b, and no more than a line of it.
std::string printable(std::string_view written);

}  // namespace engram

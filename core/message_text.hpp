#pragma once
/// Messages as a terminal may get them, whatever names of files, tensors and keys are quoted in them.

#include <cstddef>
#include <string>
#include <string_view>

namespace engram {

/// The most bytes of a line, and of all lines, in message_text().
inline constexpr std::size_t kLongestMessageLine = 4096, kLongestMessage = 65536;

/// The message with control characters other than line ends, which could move a terminal's cursor or change its
/// colours, and bytes that are no UTF-8 as "\x1b". Of a line that is too long the middle is left out, of a message the
/// end; each says how many bytes are missing. Text that needs none of it comes back as it is.
std::string message_text(std::string_view message);

}  // namespace engram

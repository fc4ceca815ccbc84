#include "core/message_text.hpp"

#include <algorithm>

#include "core/utf8_sequence.hpp"

namespace engram {
namespace {

void append_escaped(std::string& out, char byte) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto code = static_cast<unsigned char>(byte);
  out += "\\x";
  out += kDigits[code >> 4];
  out += kDigits[code & 0xf];
}

/// Neither below a space nor among the control characters that have two bytes, U+007F to U+009F.
bool is_shown(std::string_view character) {
  const auto lead = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return lead >= ' ' && lead != 0x7f;
  return lead != 0xc2 || static_cast<unsigned char>(character[1]) >= 0xa0;
}

/// Where a character begins, at or before a place in a text.
std::size_t character_start(std::string_view text, std::size_t at) {
  for (int steps = 0; steps < 3 && at > 0 && !is_utf8_start(text[at]); ++steps) --at;
  return at;
}

void append_line(std::string& out, std::string_view line) {
  std::string shown;
  for (std::size_t at = 0; at < line.size();) {
    // Printable ASCII, which is most of every message, at once.
    const std::size_t plain = at;
    while (at < line.size() && line[at] >= ' ' && line[at] < '\x7f') ++at;
    shown += line.substr(plain, at - plain);
    if (at == line.size()) break;
    const std::size_t length = utf8_sequence_length(line.substr(at));
    const std::string_view character = line.substr(at, std::max<std::size_t>(length, 1));
    if (length > 0 && is_shown(character))
      shown += character;
    else
      for (const char byte : character) append_escaped(shown, byte);
    at += character.size();
  }
  if (shown.size() <= kLongestMessageLine) {
    out += shown;
    return;
  }
  constexpr std::size_t kHalf = kLongestMessageLine / 2 - 32;  // there are words between the halves
  const std::size_t first = character_start(shown, kHalf), second = character_start(shown, shown.size() - kHalf);
  out.append(shown, 0, first);
  out += "...(" + std::to_string(second - first) + " bytes are left out)...";
  out.append(shown, second);
}

}  // namespace

std::string message_text(std::string_view message) {
  std::string out;
  while (true) {
    const std::size_t end = std::min(message.find('\n'), message.size());
    append_line(out, message.substr(0, end));
    message.remove_prefix(end);
    if (message.empty()) return out;
    if (out.size() > kLongestMessage - 2 * kLongestMessageLine)
      return out + "\n  ...(" + std::to_string(message.size()) + " bytes more)";
    out += '\n';
    message.remove_prefix(1);
  }
}

}  // namespace engram

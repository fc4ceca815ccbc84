#include "apps/data/text/utf8.hpp"

#include <cstdint>
#include <cstring>
#include <utility>

namespace engram::data {
namespace {

/// Bytes of the well-formed sequence at the beginning of `rest`, which is not empty; 0 if there is none.
std::size_t sequence_length(std::string_view rest) {
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
    if ((byte(i) & 0xc0) != 0x80) return 0;
  return length;
}

/// Whether more bytes could make a character of these, which are none yet.
bool may_go_on(std::string_view bytes) {
  std::string whole(bytes);
  // The second byte is the only one with a narrower range, whose ends are among these.
  for (const char second : {'\x80', '\x8f', '\x90', '\x9f', '\xa0', '\xbf'}) {
    whole.resize(bytes.size());
    if (whole.size() == 1) whole += second;
    while (whole.size() < 4) {
      whole += '\x80';
      if (sequence_length(whole) > bytes.size()) return true;
    }
  }
  return false;
}

}  // namespace

std::string Utf8Pieces::add(std::string_view bytes) {
  std::string complete;
  held_ += bytes;
  std::size_t at = 0;
  while (at < held_.size()) {
    const std::string_view rest = std::string_view(held_).substr(at);
    if (const std::size_t length = sequence_length(rest); length > 0) {
      complete += rest.substr(0, length);
      at += length;
    } else if (rest.size() < 4 && may_go_on(rest)) {
      break;
    } else {
      complete += kReplacement;
      ++at;
    }
  }
  held_.erase(0, at);
  return complete;
}

std::string Utf8Pieces::finish() { return std::exchange(held_, {}).empty() ? "" : std::string(kReplacement); }

std::size_t find_invalid_utf8(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    // Most of most texts is ASCII: eight bytes at once.
    std::uint64_t eight = 0;
    if (text.size() - at >= sizeof eight) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080u) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const std::size_t length = sequence_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return text.size();
}

}  // namespace engram::data

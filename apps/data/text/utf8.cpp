#include "apps/data/text/utf8.hpp"

#include <cstdint>
#include <cstring>
#include <utility>

#include "core/utf8_sequence.hpp"

namespace engram::data {
namespace {

/// Whether more bytes could make a character of these, which are none yet.
bool may_go_on(std::string_view bytes) {
  std::string whole(bytes);
  // The second byte is the only one with a narrower range, whose ends are among these.
  for (const char second : {'\x80', '\x8f', '\x90', '\x9f', '\xa0', '\xbf'}) {
    whole.resize(bytes.size());
    if (whole.size() == 1) whole += second;
    while (whole.size() < 4) {
      whole += '\x80';
      if (utf8_sequence_length(whole) > bytes.size()) return true;
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
    if (const std::size_t length = utf8_sequence_length(rest); length > 0) {
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
    const std::size_t length = utf8_sequence_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return text.size();
}

}  // namespace engram::data

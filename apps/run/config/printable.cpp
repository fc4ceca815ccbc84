#include "apps/run/config/printable.hpp"

#include <fmt/format.h>

#include "apps/data/text/utf8.hpp"

namespace engram {

std::string printable(std::string_view written) {
  constexpr std::size_t kMost = 200;
  const bool cut = written.size() > kMost;
  if (cut) written = written.substr(0, kMost);
  std::string shown;
  const auto escape = [&shown](char byte) { shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte)); };
  std::size_t invalid = data::find_invalid_utf8(written);
  for (std::size_t i = 0; i < written.size(); ++i) {
    const auto byte = static_cast<unsigned char>(written[i]);
    if (i == invalid) {
      escape(written[i]);
      invalid = i + 1 + data::find_invalid_utf8(written.substr(i + 1));
    } else if (byte < ' ' || byte == 0x7f) {
      escape(written[i]);
    } else if (byte == 0xc2 && static_cast<unsigned char>(written[i + 1]) < 0xa0) {  // the other control characters
      escape(written[i]);
      escape(written[++i]);
    } else {
      shown += written[i];
    }
  }
  return cut ? shown + "..." : shown;
}

}  // namespace engram

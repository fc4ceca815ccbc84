#pragma once
/// Texts for tests of subwords.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/reference/central_differences.hpp"

namespace engram::harness {

/// Lines of ordinary words, some far more frequent than others.
inline std::vector<std::string> subword_lines(int count) {
  constexpr std::array<std::string_view, 12> kWords{"stone", "stone", "stone", "river",  "river",  "under",
                                                    "light", "green", "house", "candle", "winter", "Ästhetik"};
  reference::RandomArrays random(11);
  std::vector<std::string> lines;
  for (int i = 0; i < count; ++i) {
    std::string line;
    const int words = static_cast<int>(random.below(9));
    for (int w = 0; w < words; ++w)
      line += std::string(w > 0 ? " " : "") + std::string(kWords.at(std::size_t(random.below(12))));
    lines.push_back(line + (i % 3 == 0 ? "." : ""));
  }
  return lines;
}

/// The same as one text.
inline std::string subword_text(int lines) {
  std::string text;
  for (const std::string& line : subword_lines(lines)) text += line + "\n";
  return text;
}

/// UTF-8 of random characters of every length, white space, and the library's own marks among them.
inline std::string random_unicode(std::uint64_t seed, int characters) {
  constexpr std::array<std::string_view, 14> kOdd{" ",      "  ",     "\t",     "\n",     "\r\n",    "\r",    "\u2581",
                                                  "\u2585", "\u00a0", "\u3000", "\ufeff", " \u2581", "stone", " river"};
  reference::RandomArrays random(seed);
  std::string text;
  for (int i = 0; i < characters; ++i) {
    if (random.below(3) == 0) {
      text += kOdd.at(std::size_t(random.below(14)));
      continue;
    }
    const std::array<std::uint32_t, 5> limits{0x80, 0x800, 0xd800, 0x10000, 0x110000};
    const auto kind = std::size_t(random.below(5));
    const std::uint32_t low = kind == 0 ? 0 : kind == 3 ? 0xe000 : limits.at(kind - 1);
    const std::uint32_t code = low + static_cast<std::uint32_t>(random.below(limits.at(kind) - low));
    const auto put = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
    if (code < 0x80) {
      put(code);
    } else if (code < 0x800) {
      put(0xc0 | code >> 6);
      put(0x80 | (code & 63));
    } else if (code < 0x10000) {
      put(0xe0 | code >> 12);
      put(0x80 | (code >> 6 & 63));
      put(0x80 | (code & 63));
    } else {
      put(0xf0 | code >> 18);
      put(0x80 | (code >> 12 & 63));
      put(0x80 | (code >> 6 & 63));
      put(0x80 | (code & 63));
    }
  }
  return text;
}

}  // namespace engram::harness

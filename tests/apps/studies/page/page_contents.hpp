#pragma once
/// What a page holds, read by other means than those that wrote it.

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "core/files/json.hpp"

namespace engram::harness {

/// The data of a page's script.
inline nlohmann::json data_of(const std::string& html) {
  const std::string_view begin = "<script type=\"application/json\" id=\"page-data\">";
  const std::size_t from = html.find(begin);
  if (from == std::string::npos) throw std::runtime_error("the page has no data");
  const std::size_t to = html.find("</script>", from);
  return nlohmann::json::parse(html.substr(from + begin.size(), to - from - begin.size()));
}

/// Bytes of base64 (RFC 4648), padding left out.
inline std::string unpacked(const std::string& packed) {
  const std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : packed) {
    if (letter == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(letters.find(letter));
    if ((count += 6) < 8) continue;
    count -= 8;
    bytes += static_cast<char>(bits >> count & 0xff);
  }
  return bytes;
}
inline std::vector<float> unpacked_floats(const std::string& packed) {
  const std::string bytes = unpacked(packed);
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  return numbers;
}

/// How often a text stands in another one.
inline std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

}  // namespace engram::harness

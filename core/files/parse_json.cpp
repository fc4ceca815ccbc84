#include "core/files/parse_json.hpp"

#include <cstddef>
#include <string>

#include "core/files/json.hpp"

namespace engram {
namespace {

/// Where a bracket stands that is nested too deep, or a zero byte, which the library takes for the end of the text;
/// npos: nowhere. Of what is no JSON some place or none: the parser finds out.
std::size_t find_refused(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    if (byte == '\0') return at;
    if (in_string) {
      if (byte == '\\')
        ++at;
      else
        in_string = byte != '"';
    } else if (byte == '"') {
      in_string = true;
    } else if (byte == '[' || byte == '{') {
      if (++depth > kDeepestJson) return at;
    } else if (byte == ']' || byte == '}') {
      --depth;
    }
  }
  return std::string_view::npos;
}

}  // namespace

nlohmann::json parse_json(std::string_view text) {
  const std::size_t refused = find_refused(text);
  // As a string: for that the parser is compiled already. One that ends too early is no JSON.
  if (refused == std::string_view::npos) return nlohmann::json::parse(std::string(text));
#if NLOHMANN_JSON_VERSION_MAJOR == 3 && NLOHMANN_JSON_VERSION_MINOR >= 11
  throw nlohmann::json::parse_error::create(
      101, refused + 1, text[refused] == '\0' ? "a zero byte" : "values are nested too deep", nullptr);
#else
  return nlohmann::json::parse(std::string(text.substr(0, refused)));
#endif
}

nlohmann::json parse_json_or_discard(std::string_view text) {
  try {
    return parse_json(text);
  } catch (const nlohmann::json::exception&) {
    return nlohmann::json::value_t::discarded;
  }
}

}  // namespace engram

#include "apps/report/json_for_html.hpp"

namespace engram {

std::string json_for_html(const nlohmann::json& object) {
  const std::string plain = object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string safe;
  safe.reserve(plain.size());
  // Outside of texts JSON has none of these.
  for (const char byte : plain) {
    if (byte == '<')
      safe += "\\u003c";
    else if (byte == '>')
      safe += "\\u003e";
    else if (byte == '&')
      safe += "\\u0026";
    else
      safe += byte;
  }
  return safe;
}

}  // namespace engram

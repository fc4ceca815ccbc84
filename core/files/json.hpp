#pragma once
/// JSON (nlohmann's library), whose templates are compiled once, in json.cpp: left to themselves they are the larger
/// part of every source that includes them. Include this instead of <nlohmann/json.hpp>.

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

/// ENGRAM_JSON_TEMPLATES(declaration): what is compiled there. Names in `detail` are those of version 3.11.
#define ENGRAM_JSON_BASIC_TEMPLATES(declaration) \
  declaration class basic_json<>;                \
  declaration class basic_json<ordered_map>;
#if NLOHMANN_JSON_VERSION_MAJOR == 3 && NLOHMANN_JSON_VERSION_MINOR == 11
#define ENGRAM_JSON_DETAIL_TEMPLATES(declaration)                                             \
  declaration class serializer<json>;                                                         \
  declaration class serializer<ordered_json>;                                                 \
  declaration class json_sax_dom_parser<json>;                                                \
  declaration class json_sax_dom_callback_parser<json>;                                       \
  declaration class lexer<json, iterator_input_adapter<std::string::const_iterator>>;         \
  declaration class parser<json, iterator_input_adapter<std::string::const_iterator>>;        \
  declaration class json_sax_dom_parser<ordered_json>;                                        \
  declaration class json_sax_dom_callback_parser<ordered_json>;                               \
  declaration class lexer<ordered_json, iterator_input_adapter<std::string::const_iterator>>; \
  declaration class parser<ordered_json, iterator_input_adapter<std::string::const_iterator>>;
#else
#define ENGRAM_JSON_DETAIL_TEMPLATES(declaration)
#endif

namespace nlohmann {
ENGRAM_JSON_BASIC_TEMPLATES(extern template)
namespace detail {
ENGRAM_JSON_DETAIL_TEMPLATES(extern template)
}  // namespace detail
}  // namespace nlohmann
extern template class std::vector<nlohmann::json>;
extern template class std::map<std::string, nlohmann::json, std::less<>>;

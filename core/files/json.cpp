#include "core/files/json.hpp"

namespace nlohmann {
ENGRAM_JSON_BASIC_TEMPLATES(template)
namespace detail {
ENGRAM_JSON_DETAIL_TEMPLATES(template)
}  // namespace detail
}  // namespace nlohmann
template class std::vector<nlohmann::json>;
template class std::map<std::string, nlohmann::json, std::less<>>;

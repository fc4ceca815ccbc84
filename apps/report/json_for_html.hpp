#pragma once
/// JSON inside a page of HTML.

#include <string>

#include "core/files/json.hpp"

namespace engram {

/// JSON that may stand in a script element: with no "<", which could end it, and of UTF-8 alone.
std::string json_for_html(const nlohmann::json& object);

}  // namespace engram

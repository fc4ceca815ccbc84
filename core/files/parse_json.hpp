#pragma once
/// JSON that somebody else wrote.

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace engram {

/// How deep arrays and objects may lie in each other in a JSON that is read. The library copies, compares and writes
/// values by recursion: a file of brackets would end the program.
inline constexpr int kDeepestJson = 100;

/// JSON in UTF-8 of whoever wrote it. Throws nlohmann::json::parse_error for what is none, which has a zero byte, or is
/// nested deeper than kDeepestJson, and nlohmann::json::out_of_range for a number that no double can be.
nlohmann::json parse_json(std::string_view text);
/// The same, but where that throws the value is_discarded().
nlohmann::json parse_json_or_discard(std::string_view text);

}  // namespace engram

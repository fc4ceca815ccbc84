#pragma once
/// What the help calls the value of an option, in capitals.

#include <string>
#include <string_view>

namespace engram {

/// What a variable that options write to holds.
enum class ValueKind : unsigned char { integer, integers, number, text, texts };

/// N and X of numbers; of texts FILE, FOLDER and the like for names that have one meaning in most commands, else WORD:
/// one of those that the option's help lists. What has no "--" is its own name in capitals. `names` as CLI11 takes
/// them.
std::string value_name(std::string_view names, ValueKind kind);

}  // namespace engram

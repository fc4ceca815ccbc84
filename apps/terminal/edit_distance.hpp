#pragma once
/// How far two words are from each other, for suggestions.

#include <cstddef>
#include <string_view>

namespace engram {

/// The number of insertions, deletions and replacements of single characters, and of swaps of two neighbours, that turn
/// one text into the other.
std::size_t edit_distance(std::string_view from, std::string_view to);

/// A number that edit_distance() is not below, and that takes no time: how much longer one is than the other.
constexpr std::size_t least_distance(std::string_view from, std::string_view to) {
  return from.size() < to.size() ? to.size() - from.size() : from.size() - to.size();
}

/// What of a given text is compared with names when the nearest is looked for: its beginning, which is longer than any
/// name. The whole of a foreign file's text would take time for every name.
constexpr std::string_view compared_part(std::string_view given) { return given.substr(0, 64); }

/// Whether `known` may have been meant by `given`: there is an error in every three letters at most.
bool is_near(std::string_view given, std::string_view known);

}  // namespace engram

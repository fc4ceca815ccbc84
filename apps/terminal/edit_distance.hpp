#pragma once
/// How far two words are from each other, for suggestions.

#include <cstddef>
#include <string_view>

namespace engram {

/// The number of insertions, deletions and replacements of single characters, and of swaps of two neighbours, that turn
/// one text into the other.
std::size_t edit_distance(std::string_view from, std::string_view to);

/// Whether `known` may have been meant by `given`: there is an error in every three letters at most.
bool is_near(std::string_view given, std::string_view known);

}  // namespace engram

#pragma once
/// Names of what can be drawn: in words, and those that a misspelt one may have meant.

#include <string>
#include <string_view>
#include <vector>

namespace engram {

/// A column of a sweep's runs.csv, or a figure of metrics.jsonl after train_ or valid_: in words, with its unit.
/// "best_valid_bpc" is "bits per character, valid (best checkpoint)". What is not known has blanks for underscores.
std::string metric_words(std::string_view metric);

/// A key of a configuration without its section, with blanks for underscores.
std::string key_words(std::string_view key);

/// ", got 'vald_bpc'; the nearest is 'valid_bpc'\n  there are: ...", in lines of at most 80 columns. "; the nearest is"
/// is left out where none is near. `known` is in the order in which it is listed.
std::string unknown_name(std::string_view given, const std::vector<std::string>& known);
/// "\n  WHAT: a, b, c", in such lines.
std::string listed_names(std::string_view what, const std::vector<std::string>& names);

}  // namespace engram

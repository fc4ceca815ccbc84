#include "apps/data/text/word_rules.hpp"

#include "core/error.hpp"

namespace engram::data {

bool parse_end_of_line(std::string_view name) {
  for (const bool kept : {true, false})
    if (name == name_of_end_of_line(kept)) return kept;
  throw UsageError(text("prepare: --eol must be keep or drop, got '", name, "'"));
}

bool parse_end_id(std::string_view name) {
  for (const bool first : {true, false})
    if (name == name_of_end_id(first)) return first;
  throw UsageError(text("prepare: --eos-id must be first or count, got '", name, "'"));
}

bool parse_count_from(std::string_view name) {
  for (const bool all : {true, false})
    if (name == name_of_count_from(all)) return all;
  throw UsageError(text("prepare: --count-from must be train or all, got '", name, "'"));
}

void lower_ascii(std::string& text) {
  for (char& letter : text)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
}

}  // namespace engram::data

#include "apps/data/word_rules.hpp"

#include "core/error.hpp"

namespace engram::data {

TieOrder parse_ties(std::string_view name) {
  for (const TieOrder ties : {TieOrder::later, TieOrder::first})
    if (name == name_of(ties)) return ties;
  throw UsageError(text("prepare: --ties must be later or first, got '", name, "'"));
}

UnseenWords parse_unseen(std::string_view name) {
  for (const UnseenWords unseen : {UnseenWords::error, UnseenWords::unk})
    if (name == name_of(unseen)) return unseen;
  throw UsageError(text("words: --oov must be error or unk, got '", name, "'"));
}

bool parse_end_of_line(std::string_view name) {
  for (const bool kept : {true, false})
    if (name == name_of_end_of_line(kept)) return kept;
  throw UsageError(text("prepare: --eol must be keep or drop, got '", name, "'"));
}

}  // namespace engram::data

#include "apps/data/text/word_rules.hpp"

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

SentenceMarks parse_sentence_marks(std::string_view name) {
  for (const SentenceMarks marks : {SentenceMarks::none, SentenceMarks::around, SentenceMarks::between})
    if (name == name_of(marks)) return marks;
  throw UsageError(text("prepare: --sentences must be none, around or between, got '", name, "'"));
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

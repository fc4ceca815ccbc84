#pragma once
/// How `engram prepare --kind word` turns lines of words into tokens.

#include <cstdint>
#include <string>
#include <string_view>

#include "core/names.hpp"

namespace engram::data {

/// Which of two words that train has equally often gets the smaller id: the one first seen later (as the released
/// program of the all-attention paper, [all-attention 7.2]) or the one first seen first.
enum class TieOrder : std::uint8_t { later, first };
constexpr auto names_of(TieOrder) {
  return std::to_array<Named<TieOrder>>({{TieOrder::later, "later"}, {TieOrder::first, "first"}});
}
/// What happens to a word that train lacks: an error that names it, or "<unk>" in its place.
enum class UnseenWords : std::uint8_t { error, unk };
constexpr auto names_of(UnseenWords) {
  return std::to_array<Named<UnseenWords>>({{UnseenWords::error, "error"}, {UnseenWords::unk, "unk"}});
}

/// Marks "<S>" of a corpus whose lines are sentences ([transformer-xl 6.1], lm1b), in the place of line ends.
///
///   none     none: line ends are tokens or not, as end_of_line says
///   around   one before and one after each sentence: <S> w .. <S> <S> w .. <S>; of two in a row the second is certain
///   between  one at the start and one after each sentence: <S> w .. <S> w .. <S>. Inputs and targets are those of
///            sentences read one by one, each input being all of it but the last mark and each target all but the first
enum class SentenceMarks : std::uint8_t { none, around, between };
constexpr auto names_of(SentenceMarks) {
  return std::to_array<Named<SentenceMarks>>(
      {{SentenceMarks::none, "none"}, {SentenceMarks::around, "around"}, {SentenceMarks::between, "between"}});
}

struct WordRules {
  bool end_of_line = true;  ///< a token "<eos>" after every line, blank ones too
  TieOrder ties = TieOrder::later;
  UnseenWords unseen = UnseenWords::error;
  std::int64_t min_count = 1;  ///< words that train has less often become "<unk>", in every split; at least 1
  bool end_first = false;      ///< "<eos>" has id 0 whatever its count; needs end_of_line
  bool count_all = false;      ///< words are counted in valid and test too, after train
  bool lower = false;          ///< A to Z become a to z; letters beyond ASCII stay as they are
  SentenceMarks sentences = SentenceMarks::none;  ///< needs a word list
  friend bool operator==(const WordRules&, const WordRules&) = default;
};

/// The values of --eos-id and --count-from.
constexpr std::string_view name_of_end_id(bool first) { return first ? "first" : "count"; }
constexpr std::string_view name_of_count_from(bool all) { return all ? "all" : "train"; }
/// The values of --eol.
constexpr std::string_view name_of_end_of_line(bool kept) { return kept ? "keep" : "drop"; }

/// The inverses; each throws UsageError on any other text, naming the option.
bool parse_end_of_line(std::string_view name);
bool parse_end_id(std::string_view name);
bool parse_count_from(std::string_view name);

/// A to Z become a to z.
void lower_ascii(std::string& text);

}  // namespace engram::data

#pragma once
/// How `engram prepare --kind word` turns lines of words into tokens.

#include <cstdint>
#include <string_view>

namespace engram::data {

/// Which of two words that train has equally often gets the smaller id: the one first seen later (as the released
/// program of the all-attention paper, spec section 7.2) or the one first seen first.
enum class TieOrder : std::uint8_t { later, first };
/// What happens to a word that train lacks: an error that names it, or "<unk>" in its place.
enum class UnseenWords : std::uint8_t { error, unk };

struct WordRules {
  bool end_of_line = true;  ///< a token "<eos>" after every line, blank ones too
  TieOrder ties = TieOrder::later;
  UnseenWords unseen = UnseenWords::error;
  std::int64_t min_count = 1;  ///< words that train has less often become "<unk>", in every split; at least 1
  friend bool operator==(const WordRules&, const WordRules&) = default;
};

constexpr std::string_view name_of(TieOrder ties) { return ties == TieOrder::later ? "later" : "first"; }
constexpr std::string_view name_of(UnseenWords unseen) { return unseen == UnseenWords::error ? "error" : "unk"; }
/// The values of --eol.
constexpr std::string_view name_of_end_of_line(bool kept) { return kept ? "keep" : "drop"; }

/// The inverses; each throws UsageError on any other text, naming the option.
TieOrder parse_ties(std::string_view name);
UnseenWords parse_unseen(std::string_view name);
bool parse_end_of_line(std::string_view name);

}  // namespace engram::data

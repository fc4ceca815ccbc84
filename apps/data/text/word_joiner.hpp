#pragma once
/// Words written together as people write them: the inverse of the rules that made them stand apart, as far as there is
/// one. A mark's place is known (a comma belongs to the word before it); of what may stand at either side, such as the
/// quote ", the first of a line opens and the second closes. Splitting what was joined gives the same words again for
/// moses and penn, but for rare runs of marks.
///
///   spaces    nothing is joined: one space between two words, as they are read
///   wikitext  as moses, and "@-@", "@,@", "@.@" join the words beside them; a heading's "= =" is "=="
///   penn      clitics ("does n't" is "doesn't"), brackets, "$ 5" and "50 %", quotes `` and ''; -LRB- and the like are
///             brackets
///   moses     words that begin with ' belong to the one before; "@-@" joins; &quot; and the like are the marks they
///             stand for

#include <cstdint>
#include <string>
#include <string_view>

#include "core/names.hpp"

namespace engram::data {

enum class WordJoin : std::uint8_t { spaces, wikitext, penn, moses };
constexpr auto names_of(WordJoin) {
  return std::to_array<Named<WordJoin>>({{WordJoin::spaces, "spaces"},
                                         {WordJoin::wikitext, "wikitext"},
                                         {WordJoin::penn, "penn"},
                                         {WordJoin::moses, "moses"}});
}

/// Joins the words of a text that comes in pieces: words with a space between two, lines with an end.
class WordJoiner {
 public:
  explicit WordJoiner(WordJoin join) : join_(join) {}

  /// What is known to be written after this piece. A word is known when a space or line end follows it.
  std::string add(std::string_view piece);
  /// The word that was begun, as far as it has come. More of it may follow.
  std::string finish();

 private:
  /// Whether a space stands before the word, by what came before; notes what the word does to the next one.
  bool stands_apart(std::string_view word);
  bool is_double_quote_apart();
  bool is_single_quote_apart(std::string_view word);
  bool is_glued_left(std::string_view word) const;
  void end_word(std::string& out);
  void end_line();

  WordJoin join_;
  std::string word_;              // that is not known to be whole
  std::string before_, earlier_;  // the last word of the line and the one before it
  bool shown_ = false;            // the last word was shown, and what comes before a space goes on with it
  bool glues_next_ = false;       // the last word and the next have no space between them
  bool double_open_ = false, single_open_ = false;  // quotes of the line
};

}  // namespace engram::data

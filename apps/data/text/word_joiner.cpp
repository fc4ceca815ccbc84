#include "apps/data/text/word_joiner.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace engram::data {
namespace {

using Pair = std::pair<std::string_view, std::string_view>;

/// No space before them, and none behind.
constexpr auto kBelongsLeft = std::to_array<std::string_view>(
    {",", ".", ";", ":", "!", "?", ")", "]", "}", "%", "''", "\u201d", "\u00bb", "\u2026"});
constexpr auto kBelongsRight = std::to_array<std::string_view>(
    {"(", "[", "{", "$", "\u00a3", "\u20ac", "#", "``", "\u201c", "\u201e", "\u00ab", "\u2018", "\u00bf", "\u00a1"});
/// Words that are no words, and what they join their neighbours by.
constexpr auto kJoins = std::to_array<Pair>({{"@-@", "-"}, {"@,@", ","}, {"@.@", "."}});
constexpr auto kBrackets = std::to_array<Pair>(
    {{"-LRB-", "("}, {"-RRB-", ")"}, {"-LSB-", "["}, {"-RSB-", "]"}, {"-LCB-", "{"}, {"-RCB-", "}"}});
constexpr auto kMosesEscapes = std::to_array<Pair>({{"&amp;", "&"},
                                                    {"&#124;", "|"},
                                                    {"&lt;", "<"},
                                                    {"&gt;", ">"},
                                                    {"&apos;", "'"},
                                                    {"&quot;", "\""},
                                                    {"&#91;", "["},
                                                    {"&#93;", "]"}});
constexpr auto kContracted = std::to_array<std::string_view>({"s", "m", "d", "re", "ve", "ll", "t"});
constexpr std::string_view kRightQuote = "\u2019";

bool is_among(std::string_view word, const auto& list) { return std::ranges::find(list, word) != list.end(); }

bool is_ascii_number(char byte) { return byte >= '0' && byte <= '9'; }
bool is_word_letter(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || static_cast<unsigned char>(byte) >= 0x80;
}
bool ends_in_letter_or_digit(std::string_view word) {
  return !word.empty() && (is_ascii_number(word.back()) || is_word_letter(word.back()));
}
bool is_clitic(std::string_view letters) {
  std::string lower(letters);
  for (char& byte : lower)
    if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
  return is_among(lower, kContracted);
}
/// A word with one of the quotes before a clitic.
bool is_quoted_clitic(std::string_view word) {
  if (word.starts_with('\'')) return is_clitic(word.substr(1));
  return word.starts_with(kRightQuote) && is_clitic(word.substr(kRightQuote.size()));
}
bool is_not(std::string_view word) {
  if (word.size() < 3 || (word[0] != 'n' && word[0] != 'N') || (word.back() != 't' && word.back() != 'T')) return false;
  const std::string_view quote = word.substr(1, word.size() - 2);
  return quote == "'" || quote == kRightQuote;
}

std::string all_replaced(std::string_view word, const auto& pairs) {
  std::string out;
  while (!word.empty()) {
    const auto found = std::ranges::find_if(pairs, [word](const Pair& pair) { return word.starts_with(pair.first); });
    out += found == pairs.end() ? word.substr(0, 1) : found->second;
    word.remove_prefix(found == pairs.end() ? 1 : found->first.size());
  }
  return out;
}
std::string replaced(std::string_view word, const auto& pairs) {
  const auto found = std::ranges::find(pairs, word, &Pair::first);
  return std::string(found == pairs.end() ? word : found->second);
}

}  // namespace

bool WordJoiner::is_double_quote_apart() {
  double_open_ = !double_open_;
  glues_next_ = double_open_;
  return double_open_;
}

bool WordJoiner::is_single_quote_apart(std::string_view word) {
  // Behind an s it is the genitive of many, or closes; behind a letter something is left out ("o'").
  const bool leaves_out = before_.size() == 1 && is_word_letter(before_[0]);
  const bool opens =
      !single_open_ && word != kRightQuote && !leaves_out && !before_.ends_with('s') && !before_.ends_with('S');
  if (opens) {
    single_open_ = glues_next_ = true;
    return true;
  }
  single_open_ = false;
  return false;
}

bool WordJoiner::is_glued_left(std::string_view word) const {
  if (is_among(word, kBelongsLeft)) return true;
  if (word.size() > 1 && word.find_first_not_of('.') == std::string_view::npos) return true;  // "..."
  // The Penn rules leave 10:30 whole.
  const bool numbers =
      join_ != WordJoin::penn && is_ascii_number(word[0]) && !earlier_.empty() && is_ascii_number(earlier_.back());
  if (numbers && before_ == ":") return true;  // 10:30
  if (before_ == kRightQuote && is_clitic(word)) return true;
  if (join_ == WordJoin::penn) return is_quoted_clitic(word) || is_not(word);
  if (word.starts_with('\'') && word.size() > 1) return ends_in_letter_or_digit(before_) || is_quoted_clitic(word);
  return join_ == WordJoin::wikitext && word == "=" && before_ == "=";
}

bool WordJoiner::stands_apart(std::string_view word) {
  const bool glued = std::exchange(glues_next_, false);
  if (word == "\"") return is_double_quote_apart() && !glued;
  if (word == "'" || word == kRightQuote) return is_single_quote_apart(word) && !glued;
  glues_next_ = is_among(word, kBelongsRight);
  if (join_ != WordJoin::penn && (word == "/" || word == "@" || word == "_")) {
    glues_next_ = true;
    return false;
  }
  const bool apart = !glued && !is_glued_left(word);
  // The first word of a line keeps the quote before it.
  if (apart && join_ != WordJoin::penn && word.starts_with('\'')) single_open_ = true;
  return apart;
}

void WordJoiner::end_line() {
  before_.clear();
  earlier_.clear();
  shown_ = glues_next_ = double_open_ = single_open_ = false;
}

void WordJoiner::end_word(std::string& out) {
  if (word_.empty()) {
    shown_ = false;
    return;
  }
  std::string word = std::exchange(word_, {});
  if (std::exchange(shown_, false)) {  // the rest of a word whose beginning was shown
    before_ += word;
    out += word;
    return;
  }
  if (join_ == WordJoin::moses) word = all_replaced(word, kMosesEscapes);
  const auto join = std::ranges::find(kJoins, word, &Pair::first);
  if (join != kJoins.end()) {
    out += join->second;
    glues_next_ = true;
  } else {
    if (join_ == WordJoin::penn) word = replaced(word, kBrackets);
    const bool first = before_.empty();
    if (stands_apart(word) && !first) out += ' ';
    out += word;
  }
  earlier_ = std::exchange(before_, std::move(word));
}

std::string WordJoiner::add(std::string_view piece) {
  if (join_ == WordJoin::spaces) return std::string(piece);
  std::string out;
  for (const char byte : piece) {
    if (byte != ' ' && byte != '\n') {
      word_ += byte;
      continue;
    }
    end_word(out);
    if (byte != '\n') continue;
    out += '\n';
    end_line();
  }
  return out;
}

std::string WordJoiner::finish() {
  std::string out;
  if (word_.empty()) return out;
  end_word(out);
  shown_ = true;
  return out;
}

}  // namespace engram::data

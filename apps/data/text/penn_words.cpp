#include "apps/data/text/penn_words.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "apps/data/text/line_words.hpp"

namespace engram::data {
namespace {

using Words = std::vector<std::string_view>;

constexpr auto kWhole = std::to_array<std::string_view>({"<unk>", "@-@", "@,@", "@.@"});
/// Apart wherever they are; longer ones first.
constexpr auto kApart = std::to_array<std::string_view>(
    {"...",    "--",     "``",     "''",     "(",      ")",      "[",      "]",      "{",
     "}",      "<",      ">",      "\"",     ";",      "!",      "?",      "*",      "%",
     "$",      "~",      "^",      "|",      "\\",     "`",      "\u201c", "\u201d", "\u201e",
     "\u00ab", "\u00bb", "\u2014", "\u2013", "\u2026", "\u20ac", "\u00a3", "\u00bf", "\u00a1"});
constexpr auto kSingleQuotes = std::to_array<std::string_view>({"'", "\u2019", "\u2018"});
/// What a single quote may begin.
constexpr auto kQuoteWords = std::to_array<std::string_view>({"em", "n", "til", "tis", "twas", "cause", "bout"});
constexpr auto kClitics = std::to_array<std::string_view>({"s", "m", "d", "re", "ve", "ll"});

bool is_ascii_digit(char byte) { return byte >= '0' && byte <= '9'; }
bool is_letter_or_digit(char byte) {
  return is_ascii_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         static_cast<unsigned char>(byte) >= 0x80;
}
char lower(char byte) { return byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte - 'A' + 'a') : byte; }

bool is_one_of(std::string_view word, const auto& list) {
  return std::ranges::any_of(list, [word](std::string_view one) {
    return std::ranges::equal(word, one, [](char a, char b) { return lower(a) == b; });
  });
}

/// Bytes of the one of `list` that `rest` begins with; 0 if there is none.
std::size_t length_at(std::string_view rest, const auto& list) {
  const auto found = std::ranges::find_if(list, [rest](std::string_view one) { return rest.starts_with(one); });
  return found == list.end() ? 0 : found->size();
}

std::size_t last_length(std::string_view word, const auto& list) {
  const auto found = std::ranges::find_if(list, [word](std::string_view one) { return word.ends_with(one); });
  return found == list.end() ? 0 : found->size();
}

/// Bytes of the mark at `at` of a chunk without white space that is apart there; 0 inside a word.
std::size_t mark_length(std::string_view chunk, std::size_t at) {
  const std::string_view rest = chunk.substr(at);
  if (const std::size_t whole = length_at(rest, kWhole); whole > 0) return whole;
  if (rest.starts_with("...")) return std::min(rest.find_first_not_of('.'), rest.size());
  if (const std::size_t apart = length_at(rest, kApart); apart > 0) return apart;
  const char before = at > 0 ? chunk[at - 1] : ' ', after = rest.size() > 1 ? rest[1] : ' ';
  if (rest[0] == ',' || rest[0] == ':') return is_ascii_digit(before) && is_ascii_digit(after) ? 0 : 1;
  if (std::string_view("&@#_=").find(rest[0]) != std::string_view::npos)
    return is_letter_or_digit(before) && is_letter_or_digit(after) ? 0 : 1;
  return 0;
}

/// A single quote before the word.
std::size_t opening_quote(std::string_view word) {
  const std::size_t quote = length_at(word, kSingleQuotes);
  if (quote == 0 || quote == word.size()) return quote;
  std::string_view rest = word.substr(quote);
  if (is_ascii_digit(rest[0])) return 0;  // '90s
  if (is_one_of(rest, kClitics)) return 0;
  if (const std::size_t end = last_length(rest, kSingleQuotes); end > 0 && end < rest.size()) rest.remove_suffix(end);
  return is_one_of(rest, kQuoteWords) ? 0 : quote;
}

/// Bytes of the clitic at the end of the word, its quote among them.
std::size_t clitic_length(std::string_view word) {
  std::size_t at = word.size();
  while (at > 0 && is_letter_or_digit(word[at - 1]) && static_cast<unsigned char>(word[at - 1]) < 0x80) --at;
  const std::string_view letters = word.substr(at), before = word.substr(0, at);
  const std::size_t quote = last_length(before, kSingleQuotes);
  if (quote == 0 || quote == before.size()) return 0;
  if (is_one_of(letters, kClitics)) return quote + letters.size();
  const char last = lower(before[before.size() - quote - 1]);
  const bool is_not = letters.size() == 1 && lower(letters[0]) == 't' && last == 'n' && before.size() > quote + 1;
  return is_not ? quote + 2 : 0;
}

/// A run without marks: what is left are single quotes and clitics.
void add_word(std::string_view word, Words& words) {
  if (const std::size_t quote = opening_quote(word); quote > 0) {
    words.push_back(word.substr(0, quote));
    word.remove_prefix(quote);
  }
  if (word.empty()) return;
  const std::size_t end = last_length(word, kSingleQuotes);
  const bool quoted = end > 0 && end < word.size() && !(word.size() == 3 && is_one_of(word.substr(1, 1), kQuoteWords));
  const std::string_view inner = quoted ? word.substr(0, word.size() - end) : word;
  const std::size_t clitic = clitic_length(inner);
  words.push_back(inner.substr(0, inner.size() - clitic));
  if (clitic > 0) words.push_back(inner.substr(inner.size() - clitic));
  if (quoted) words.push_back(word.substr(word.size() - end));
}

void add_chunk(std::string_view chunk, Words& words) {
  std::size_t begin = 0, at = 0;
  const auto end_word = [&] {
    if (at > begin) add_word(chunk.substr(begin, at - begin), words);
  };
  while (at < chunk.size()) {
    const std::size_t mark = mark_length(chunk, at);
    if (mark == 0) {
      ++at;
      continue;
    }
    end_word();
    words.push_back(chunk.substr(at, mark));
    begin = at += mark;
  }
  end_word();
}

bool closes(std::string_view word) {
  return length_at(word, kSingleQuotes) == word.size() || word == "\"" || word == "''" || word == ")" || word == "]" ||
         word == "}" || word == "\u201d" || word == "\u00bb";
}

/// The period that ends the sentence.
void split_last_period(Words& words) {
  std::size_t last = words.size();
  while (last > 0 && closes(words[last - 1])) --last;
  if (last == 0) return;
  std::string_view& word = words[last - 1];
  if (word.size() < 2 || !word.ends_with('.') || word.ends_with("..")) return;
  const std::string_view period = word.substr(word.size() - 1);
  word.remove_suffix(1);
  const std::string_view before = word;
  words.erase(words.begin() + static_cast<std::ptrdiff_t>(last) - 1);
  Words parts;
  add_word(before, parts);  // a clitic or quote may have been behind the period
  parts.push_back(period);
  words.insert(words.begin() + static_cast<std::ptrdiff_t>(last) - 1, parts.begin(), parts.end());
}

}  // namespace

void split_penn_words(std::string_view sentence, bool ended, const std::function<void(std::string_view word)>& visit) {
  using Piece = LineWordReader::Piece;
  Words words;
  LineWordReader reader(sentence);
  for (Piece piece = reader.next(); piece != Piece::text_end; piece = reader.next())
    if (piece == Piece::word) add_chunk(reader.word(), words);
  if (ended) split_last_period(words);
  for (const std::string_view word : words) visit(word);
}

}  // namespace engram::data

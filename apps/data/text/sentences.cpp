#include "apps/data/text/sentences.hpp"

#include <algorithm>
#include <array>
#include <cstdint>

#include "apps/data/text/line_words.hpp"

namespace engram::data {
namespace {

constexpr auto kAbbreviations = std::to_array<std::string_view>(
    {"Mr",  "Mrs",  "Ms",  "Messrs", "Dr",  "Prof", "St",  "Sr",  "Jr",  "vs",   "v",    "Gen",    "Col", "Lt",
     "Maj", "Capt", "Cpt", "Cmdr",   "Sgt", "Rev",  "Hon", "Gov", "Sen", "Rep",  "Mt",   "Ft",     "cf",  "e.g",
     "i.e", "al",   "ca",  "Jan",    "Feb", "Aug",  "Sep", "Oct", "Nov", "Dept", "Bros", "approx", "Adm"});
/// These end sentences too, unless a number follows.
constexpr auto kBeforeNumbers =
    std::to_array<std::string_view>({"No", "no", "Nos", "nos", "Fig", "fig", "Vol", "vol", "p", "pp", "Dec", "Art"});

bool is_digit_byte(char byte) { return byte >= '0' && byte <= '9'; }
bool is_ascii_upper(char byte) { return byte >= 'A' && byte <= 'Z'; }

/// Upper-case letters of the Latin, Greek and Cyrillic alphabets; the code point is of two bytes.
bool is_wide_upper(std::uint32_t point) {
  if (point >= 0xc0 && point <= 0xde) return point != 0xd7;
  if ((point >= 0x100 && point <= 0x137) || (point >= 0x14a && point <= 0x177)) return point % 2 == 0;
  if (point >= 0x139 && point <= 0x148) return point % 2 == 1;
  if (point == 0x178 || point == 0x179 || point == 0x17b || point == 0x17d) return true;
  return (point >= 0x386 && point <= 0x3ab && point != 0x390) || (point >= 0x400 && point <= 0x42f);
}

bool begins_sentence(std::string_view rest) {
  if (is_ascii_upper(rest[0]) || is_digit_byte(rest[0]) || rest[0] == '"' || rest[0] == '\'' || rest[0] == '`')
    return true;
  for (const std::string_view quote : {"\u201c", "\u2018", "\u00ab", "\u201e"})
    if (rest.starts_with(quote)) return true;
  const auto byte = [rest](std::size_t i) { return static_cast<unsigned char>(rest[i]); };
  return rest.size() > 1 && (byte(0) & 0xe0) == 0xc0 && is_wide_upper((byte(0) & 0x1fu) << 6 | (byte(1) & 0x3fu));
}

constexpr auto kClosers = std::to_array<std::string_view>({"\"", "'", ")", "]", "}", "\u201d", "\u2019", "\u00bb"});

/// Bytes of the quote or bracket at the beginning of `rest` that may close; 0 if there is none.
std::size_t closer_length(std::string_view rest) {
  for (const std::string_view closer : kClosers)
    if (rest.starts_with(closer)) return closer.size();
  return 0;
}

bool is_end_mark(char byte) { return byte == '.' || byte == '!' || byte == '?'; }

/// Letters with periods between them: "J", "J.R.R". `word` is without its last period.
bool are_initials(std::string_view word) {
  for (std::size_t i = 0; i < word.size(); ++i)
    if (i % 2 == 0 ? !is_ascii_upper(word[i]) : word[i] != '.') return false;
  return word.size() % 2 == 1;
}

/// Whether the period behind `before` is part of a word; `after` begins with what follows the white space behind it, or
/// is empty if that is not known.
bool is_abbreviation(std::string_view before, std::string_view after) {
  std::size_t begin = before.size();
  const auto is_inside = [](char byte) {
    return byte == '.' || (byte >= 'a' && byte <= 'z') || is_ascii_upper(byte) || is_digit_byte(byte) ||
           static_cast<unsigned char>(byte) >= 0x80;
  };
  while (begin > 0 && is_inside(before[begin - 1])) --begin;
  const std::string_view word = before.substr(begin);
  if (word.empty()) return false;
  const auto is_one_of = [word](const auto& list) { return std::ranges::find(list, word) != list.end(); };
  return are_initials(word) || is_one_of(kAbbreviations) ||
         (!after.empty() && is_digit_byte(after[0]) && is_one_of(kBeforeNumbers));
}

}  // namespace

void split_sentences(std::string_view text, const std::function<void(std::string_view sentence)>& visit) {
  const auto skip_space = [text](std::size_t at) {
    while (at < text.size()) {
      const std::size_t space = white_space_length(text.substr(at));
      if (space == 0) break;
      at += space;
    }
    return at;
  };
  std::size_t begin = skip_space(0), last_end = begin, at = begin;
  while (at < text.size()) {
    if (const std::size_t space = white_space_length(text.substr(at)); space > 0) {
      at += space;
      continue;
    }
    const char mark = text[at];
    last_end = ++at;
    if (!is_end_mark(mark)) continue;
    std::size_t end = at;
    while (end < text.size() && is_end_mark(text[end])) ++end;
    const bool one_period = mark == '.' && end == at;
    for (std::size_t length = 1; end < text.size() && length > 0; end += length)
      length = closer_length(text.substr(end));
    const bool closed = end != at;
    const std::size_t next = skip_space(end);
    if (next == end || next == text.size() || !begins_sentence(text.substr(next))) continue;
    if (one_period && !closed && is_abbreviation(text.substr(begin, at - 1 - begin), text.substr(next))) continue;
    visit(text.substr(begin, end - begin));
    begin = last_end = at = next;
  }
  if (last_end > begin) visit(text.substr(begin, last_end - begin));
}

bool ends_sentence(std::string_view sentence) {
  const std::size_t whole = sentence.size();
  for (std::size_t length = 1; length > 0; sentence.remove_suffix(length)) {
    const auto closer = std::ranges::find_if(kClosers, [sentence](auto one) { return sentence.ends_with(one); });
    length = closer == kClosers.end() ? 0 : closer->size();
  }
  if (sentence.empty() || !is_end_mark(sentence.back())) return false;
  const std::string_view before = sentence.substr(0, sentence.size() - 1);
  const bool one_period = sentence.back() == '.' && (before.empty() || !is_end_mark(before.back()));
  return !one_period || sentence.size() < whole || !is_abbreviation(before, "");
}

}  // namespace engram::data

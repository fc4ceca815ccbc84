#include "apps/data/text/moses_words.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "apps/data/text/letter_classes.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram::data {
namespace {

/// Two or more dots in a row are one letter here while rules go over the line: this one plus how many they are. Unicode
/// ends before it.
constexpr char32_t kDots = 0x110000;

std::u32string letters_of(std::string_view line) {
  std::u32string letters;
  letters.reserve(line.size());
  for (std::size_t at = 0; at < line.size();) {
    const auto first = static_cast<unsigned char>(line[at]);
    const int more = first < 0xc0 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    char32_t letter = more == 0 ? first : first & (0x3fu >> more);
    for (int i = 1; i <= more; ++i)
      letter = letter << 6 | (static_cast<unsigned char>(line[at + static_cast<std::size_t>(i)]) & 0x3fu);
    letters += letter;
    at += static_cast<std::size_t>(more) + 1;
  }
  return letters;
}

void append_utf8(std::string& out, char32_t letter) {
  const auto put = [&out](char32_t byte) { out += static_cast<char>(byte); };
  const auto put_rest = [&](int shift) { put(0x80 | (letter >> shift & 0x3f)); };
  if (letter < 0x80) return put(letter);
  if (letter < 0x800) {
    put(0xc0 | letter >> 6);
    return put_rest(0);
  }
  if (letter < 0x10000) {
    put(0xe0 | letter >> 12);
  } else {
    put(0xf0 | letter >> 18);
    put_rest(12);
  }
  put_rest(6);
  put_rest(0);
}

std::string utf8_of(std::u32string_view letters) {
  std::string out;
  for (const char32_t letter : letters)
    if (letter >= kDots)
      out.append(letter - kDots, '.');
    else
      append_utf8(out, letter);
  return out;
}

/// Runs of white space as one space each, none at the ends, without control characters.
std::u32string one_spaced(std::u32string_view line) {
  std::u32string out;
  const auto space = [&out] {
    if (!out.empty() && out.back() != U' ') out += U' ';
  };
  for (const char32_t letter : line) {
    if (is_white_space(letter))
      space();
    else if (letter >= 0x20)
      out += letter;
  }
  if (out.ends_with(U' ')) out.pop_back();
  return out;
}

std::u32string with_marks_apart(std::u32string_view line) {
  std::u32string out;
  for (const char32_t letter : line) {
    if (is_alphanumeric(letter) || std::u32string_view(U" .'`,-").find(letter) != std::u32string_view::npos)
      out += letter;
    else
      out.append({U' ', letter, U' '});
  }
  return out;
}

std::u32string with_hyphens_apart(std::u32string_view line) {
  std::u32string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    out += line[i];
    if (i + 2 >= line.size() || line[i + 1] != U'-' || !is_alphanumeric(line[i]) || !is_alphanumeric(line[i + 2]))
      continue;
    out += U" @-@ ";
    ++i;
  }
  return out;
}

std::u32string with_dots_joined(std::u32string_view line) {
  std::u32string out;
  for (std::size_t i = 0; i < line.size();) {
    const std::size_t end = std::min(line.find_first_not_of(U'.', i), line.size());
    if (end - i < 2) {
      out += line[i++];
      continue;
    }
    out.append({U' ', kDots + static_cast<char32_t>(end - i), U' '});
    i = end;
  }
  return out;
}

/// A comma behind what is no number, then one before what is none, then the line's last.
std::u32string with_commas_apart(std::u32string_view line) {
  std::u32string behind, out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    behind += line[i];
    if (i + 1 == line.size() || line[i + 1] != U',' || is_numeric(line[i])) continue;
    behind += U" , ";
    ++i;
  }
  for (std::size_t i = 0; i < behind.size(); ++i) {
    if (behind[i] != U',' || i + 1 == behind.size() || is_numeric(behind[i + 1])) {
      out += behind[i];
      continue;
    }
    out.append({U' ', U',', U' ', behind[++i]});
  }
  if (out.size() > 1 && out.back() == U',' && is_numeric(out[out.size() - 2])) out.insert(out.size() - 1, U" ");
  return out;
}

/// Spaces around an apostrophe between two letters of these classes, or before it alone. A letter that stands between
/// two apostrophes is a part of the first match, so the second is left to the next rule.
template <class Before, class After>
std::u32string with_apostrophes(std::u32string_view line, Before before, After after, std::u32string_view put) {
  std::u32string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    out += line[i];
    if (i + 2 >= line.size() || line[i + 1] != U'\'' || !before(line[i]) || !after(line[i + 2])) continue;
    out += put;
    out += line[i + 2];
    i += 2;
  }
  return out;
}

std::u32string with_contractions(std::u32string_view line) {
  const auto other = [](char32_t letter) { return !is_alphabetic(letter); };
  const auto mark = [](char32_t letter) { return !is_alphabetic(letter) && !is_numeric(letter); };
  constexpr std::u32string_view kApart = U" ' ", kBegins = U" '";
  std::u32string out = with_apostrophes(line, other, other, kApart);
  out = with_apostrophes(out, mark, is_alphabetic, kApart);
  out = with_apostrophes(out, is_alphabetic, other, kApart);
  out = with_apostrophes(out, is_alphabetic, is_alphabetic, kBegins);
  return with_apostrophes(
      out, is_numeric, [](char32_t letter) { return letter == U's'; }, kBegins);
}

/// What is between spaces, nothing between two of them; without the nothings at the end.
std::vector<std::u32string_view> fields_of(std::u32string_view line) {
  std::vector<std::u32string_view> fields;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(U' ', begin), line.size());
    fields.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  while (!fields.empty() && fields.back().empty()) fields.pop_back();
  return fields;
}

std::string escaped(std::string_view line) {
  constexpr auto kEscapes = std::to_array<std::pair<char, std::string_view>>({{'&', "&amp;"},
                                                                              {'|', "&#124;"},
                                                                              {'<', "&lt;"},
                                                                              {'>', "&gt;"},
                                                                              {'\'', "&apos;"},
                                                                              {'"', "&quot;"},
                                                                              {'[', "&#91;"},
                                                                              {']', "&#93;"}});
  std::string out;
  for (const char byte : line) {
    const auto found = std::ranges::find(kEscapes, byte, &std::pair<char, std::string_view>::first);
    if (found == kEscapes.end())
      out += byte;
    else
      out += found->second;
  }
  return out;
}

}  // namespace

bool MosesTokenizer::keeps_full_stop(std::u32string_view before, std::u32string_view next) const {
  const bool has_dot = before.find(U'.') != std::u32string_view::npos;
  if (has_dot && std::ranges::any_of(before, is_alphabetic)) return true;
  if (!next.empty() && is_lowercase(next[0])) return true;
  const std::string word = utf8_of(before);
  if (rules_.prefixes.always.contains(word)) return true;
  return !next.empty() && next[0] >= U'0' && next[0] <= U'9' && rules_.prefixes.before_numbers.contains(word);
}

std::u32string MosesTokenizer::with_full_stops(std::u32string_view line) const {
  const std::vector<std::u32string_view> fields = fields_of(line);
  std::u32string out;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    std::u32string_view field = fields[i];
    const bool stops = field.size() > 1 && field.ends_with(U'.');
    if (stops) field.remove_suffix(1);
    if (!out.empty() && !out.ends_with(U' ')) out += U' ';
    out += field;
    if (!stops) continue;
    out += i + 1 < fields.size() && keeps_full_stop(field, fields[i + 1]) ? U"." : U" .";
  }
  if (out.ends_with(U' ')) out.pop_back();
  return out;
}

std::string MosesTokenizer::words(std::string_view line) const {
  std::u32string letters = with_marks_apart(one_spaced(letters_of(line)));
  if (rules_.hyphens) letters = with_hyphens_apart(letters);
  letters = with_full_stops(with_contractions(with_commas_apart(with_dots_joined(letters))));
  // The one apostrophe that no rule has seen is that at the end.
  if (letters.ends_with(U".'")) letters.replace(letters.size() - 2, 2, U" . '");
  const std::string words = utf8_of(one_spaced(letters));
  return rules_.escape ? escaped(words) : words;
}

nlohmann::ordered_json json_of(const MosesRules& rules) {
  nlohmann::ordered_json json{{"name", "moses"}, {"escape", rules.escape}, {"hyphens", rules.hyphens}};
  if (rules.prefixes == usual_moses_prefixes()) return json;
  json["prefixes"] = rules.prefixes.always;
  json["prefixes_of_numbers"] = rules.prefixes.before_numbers;
  return json;
}

MosesRules moses_rules_of(const nlohmann::json& json) {
  if (json.at("name") != "moses")
    throw UsageError(text("prepare: the tokenizer must be moses, got ", json.at("name").dump()));
  MosesRules rules{.escape = json.at("escape").get<bool>(), .hyphens = json.at("hyphens").get<bool>()};
  if (json.contains("prefixes")) {
    json.at("prefixes").get_to(rules.prefixes.always);
    json.at("prefixes_of_numbers").get_to(rules.prefixes.before_numbers);
  }
  return rules;
}

}  // namespace engram::data

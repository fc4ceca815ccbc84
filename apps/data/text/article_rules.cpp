#include "apps/data/text/article_rules.hpp"

#include <array>
#include <utility>

#include "apps/data/text/word_rules.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/files/json_integer.hpp"

namespace engram::data {

nlohmann::ordered_json json_of(const ArticleRules& rules) {
  nlohmann::ordered_json json{{"format", name_of(rules.format)},
                              {"pretokenized", rules.pretokenized},
                              {"sentence_lines", rules.sentence_lines},
                              {"sentence_end", rules.sentence_end},
                              {"keep_numbers", rules.keep_numbers},
                              {"chapters", rules.chapters},
                              {"seed", rules.seed}};
  if (rules.words) json["words"] = *rules.words;
  if (rules.held_out) json["held_out"] = *rules.held_out;
  return json;
}

ArticleRules article_rules_of(const nlohmann::json& json) {
  ArticleRules rules{.format = parse_named<ArticleFormat>("prepare: --format", json.at("format").get<std::string>()),
                     .pretokenized = json.at("pretokenized"),
                     .sentence_lines = json.at("sentence_lines"),
                     .sentence_end = json.at("sentence_end"),
                     .keep_numbers = json.at("keep_numbers"),
                     .chapters = json.at("chapters")};
  rules.seed = integer_of<std::uint64_t>(json.at("seed"));
  if (json.contains("words")) rules.words = integer_of<std::int64_t>(json.at("words"));
  if (json.contains("held_out")) rules.held_out = integer_of<std::int64_t>(json.at("held_out"));
  return rules;
}

bool is_number_join(std::string_view word) {
  return word.size() == 3 && word[0] == '@' && word[2] == '@' &&
         std::string_view(",.-").find(word[1]) != std::string_view::npos;
}

bool is_number(std::string_view word) {
  bool has_digit = false;
  while (!word.empty()) {
    const bool digit = word[0] >= '0' && word[0] <= '9';
    has_digit = has_digit || digit;
    if (is_number_join(word.substr(0, 3)))
      word.remove_prefix(3);
    else if (digit || std::string_view(".,:/-+%").find(word[0]) != std::string_view::npos)
      word.remove_prefix(1);
    else
      return false;
  }
  return has_digit;
}

void ArticleWords::normalise(std::string& word) const {
  if (word == "<unk>" || word == kUnknownWord) {
    word = kUnknownWord;
  } else if (!keep_numbers_ && is_number(word)) {
    word = kNumber;
  } else if (lower_ && !(pretokenized_ && word == kNumber)) {
    lower_ascii(word);
  }
}

void ArticleWords::normalise(std::vector<std::string>& sentence) const {
  std::size_t kept = 0;
  bool after_number = false;
  for (std::size_t i = 0; i < sentence.size(); ++i) {
    if (after_number && i + 1 < sentence.size() && is_number_join(sentence[i]) && is_number(sentence[i + 1])) {
      ++i;  // part of the number before
      continue;
    }
    after_number = !keep_numbers_ && is_number(sentence[i]);
    if (kept != i) sentence[kept] = std::move(sentence[i]);
    normalise(sentence[kept]);
    ++kept;
  }
  sentence.resize(kept);
}

}  // namespace engram::data

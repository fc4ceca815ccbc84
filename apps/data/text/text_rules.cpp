#include "apps/data/text/text_rules.hpp"

#include "core/files/json.hpp"
#include "core/files/parse_json.hpp"

namespace engram::data {
namespace {

/// The member "kind" of data of words (vocabulary/token_kind.hpp).
constexpr std::string_view kWordKind = "word";

void read_tokenizer(const nlohmann::json& json, TextRules& rules) {
  if (const auto found = json.find("tokenizer"); found != json.end()) rules.tokenizer = moses_rules_of(*found);
}

/// What "join" says, or else what follows from what made the words.
WordJoin read_join(const nlohmann::json& json, WordJoin otherwise) {
  const auto found = json.find("join");
  return found == json.end() ? otherwise : parse_named<WordJoin>("prepare: --join", found->get<std::string>());
}

/// Of words in articles, as their files were read.
WordJoin join_of(const ArticleRules& articles) {
  if (!articles.pretokenized || articles.format == ArticleFormat::cbt) return WordJoin::penn;
  return articles.format == ArticleFormat::wikitext ? WordJoin::wikitext : WordJoin::spaces;
}

}  // namespace

std::string TextRules::json_text() const {
  nlohmann::ordered_json json{{"lower", lower}, {"sentences", name_of(sentences)}};
  json["join"] = name_of(join);
  if (articles) json["articles"] = json_of(*articles);
  if (tokenizer) json["tokenizer"] = json_of(*tokenizer);
  return json.dump();
}

TextRules TextRules::parse(std::string_view written) {
  const nlohmann::json json = parse_json(written);
  TextRules rules{.lower = json.at("lower").get<bool>()};
  // Data of articles have sentences of another kind, and need not say that they have none of these.
  rules.sentences = parse_named<SentenceMarks>("prepare: --sentences",
                                               json.value("sentences", std::string(name_of(SentenceMarks::none))));
  if (const auto found = json.find("articles"); found != json.end()) rules.articles = article_rules_of(*found);
  read_tokenizer(json, rules);
  // An earlier version did not say, and wrote words as they are read.
  rules.join = read_join(json, WordJoin::spaces);
  return rules;
}

TextRules text_rules_of(const nlohmann::json& data) {
  TextRules rules{.lower = data.value("lower", false)};
  rules.sentences = parse_named<SentenceMarks>("prepare: --sentences",
                                               data.value("sentences", std::string(name_of(SentenceMarks::none))));
  if (const auto found = data.find("articles"); found != data.end()) {
    rules.articles = article_rules_of(*found);
    rules.articles->format = parse_named<ArticleFormat>(
        "prepare: --format", found->value(kFoundFormat, std::string(name_of(rules.articles->format))));
  }
  read_tokenizer(data, rules);
  const bool in_articles = rules.articles && data.value("kind", "") == kWordKind;
  const WordJoin usual = rules.tokenizer ? WordJoin::moses : in_articles ? join_of(*rules.articles) : WordJoin::spaces;
  rules.join = read_join(data, usual);
  return rules;
}

}  // namespace engram::data

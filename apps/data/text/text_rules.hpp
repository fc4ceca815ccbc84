#pragma once
/// How the text of a data set became words: what a model's data folder and its checkpoint say, so that a text of the
/// command line is read in the same way (text_tokens.hpp). Characters need none.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "apps/data/text/article_rules.hpp"
#include "apps/data/text/moses_words.hpp"
#include "apps/data/text/word_joiner.hpp"
#include "apps/data/text/word_rules.hpp"

namespace engram::data {

/// The member of data.json's "articles" that says which format all files had, where it was the same.
inline constexpr const char* kFoundFormat = "found_format";

/// As it is made, words are what is between white space, as they are written.
struct TextRules {
  bool lower = false;  ///< A to Z are read as a to z
  SentenceMarks sentences = SentenceMarks::none;
  /// Words are those of articles. Their format is the one that all files had, automatic if they had several.
  std::optional<ArticleRules> articles{};
  /// What made words of the lines that subwords are of.
  std::optional<MosesRules> tokenizer{};
  /// How words that a model writes become a text for people.
  WordJoin join = WordJoin::spaces;

  /// The object that parse() reads.
  std::string json_text() const;
  /// Throws nlohmann's exceptions and UsageError for a text of another form.
  static TextRules parse(std::string_view json);
};

/// What data.json says, given as JSON. Throws as TextRules::parse.
TextRules text_rules_of(const nlohmann::json& data);

}  // namespace engram::data

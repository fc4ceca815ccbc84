#pragma once
/// How `engram prepare --kind word --articles` turns articles into tokens ([key-value-predict 5.2]).

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/names.hpp"

namespace engram::data {

/// Words that stand for something else in data of articles.
inline constexpr std::string_view kSentenceEnd = "</s>", kNumber = "N", kUnknownWord = "UNK";

/// Where articles begin in a file.
///
///   automatic  as the first line that is not blank says: "<doc", " = Title = ", "_BOOK_TITLE_", or else file
///   file       every file is one article
///   doc        lines "<doc ...>" and "</doc>" are around each
///   wikitext   a line " = Title = ", one "=" on each side, after a blank line or at the start of the file, begins one
///   and is its first
///              sentence
///   cbt        the raw books of the Children's Book Test: a line that begins with "_BOOK_TITLE_" begins one and is
///              left out; every other line is a sentence of words
enum class ArticleFormat : std::uint8_t { automatic, file, doc, wikitext, cbt };
constexpr auto names_of(ArticleFormat) {
  return std::to_array<Named<ArticleFormat>>({{ArticleFormat::automatic, "auto"},
                                              {ArticleFormat::file, "file"},
                                              {ArticleFormat::doc, "doc"},
                                              {ArticleFormat::wikitext, "wikitext"},
                                              {ArticleFormat::cbt, "cbt"}});
}

struct ArticleRules {
  /// Files and folders of articles, which are split; none: PrepareOptions' train, valid and test are the splits.
  std::vector<std::filesystem::path> paths{};
  ArticleFormat format = ArticleFormat::automatic;
  bool pretokenized = false;    ///< words are what is between white space; else penn_words.hpp (cbt: always so)
  bool sentence_lines = false;  ///< a sentence is a line, nothing else ends one; else sentences.hpp (cbt: always so)
  bool sentence_end = true;     ///< kSentenceEnd after every sentence
  bool keep_numbers = false;    ///< numbers are words like others; else kNumber stands for all of them
  bool chapters = false;        ///< cbt: a line that begins with "CHAPTER" begins an article as well
  std::optional<std::int64_t> words{};     ///< V at most, the three marks among them; none: all words of train
  std::uint64_t seed = 1;                  ///< of the split
  std::optional<std::int64_t> held_out{};  ///< so many articles are valid, and as many test; none: shares
  friend bool operator==(const ArticleRules&, const ArticleRules&) = default;
};

/// The object "articles" of data.json: all rules but the paths.
nlohmann::ordered_json json_of(const ArticleRules& rules);
/// Rules as json_of() writes them. Throws nlohmann's exceptions and UsageError for an object of another form.
ArticleRules article_rules_of(const nlohmann::json& json);

/// Whether a word is a number: it has a digit, and nothing but digits and . , : / - + % and WikiText's @,@ @.@ @-@.
bool is_number(std::string_view word);
/// Whether a word joins the numbers beside it: @,@ @.@ or @-@.
bool is_number_join(std::string_view word);

/// What a word of a text is in the vocabulary: a mark (kNumber for a number, kUnknownWord for itself and "<unk>"), or
/// the word itself, with `lower` A to Z as a to z. With `lower` the word N is a letter like others, unless
/// `pretokenized`: then it is kNumber.
class ArticleWords {
 public:
  ArticleWords(bool lower, bool keep_numbers, bool pretokenized)
      : lower_(lower), keep_numbers_(keep_numbers), pretokenized_(pretokenized) {}
  /// Replaces the words of a sentence by those of the vocabulary. Numbers with one of WikiText's joins between them
  /// become one ("1 @,@ 000" is N).
  void normalise(std::vector<std::string>& sentence) const;

 private:
  void normalise(std::string& word) const;
  bool lower_, keep_numbers_, pretokenized_;
};

}  // namespace engram::data

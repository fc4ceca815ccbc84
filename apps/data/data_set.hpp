#pragma once
/// A folder that `engram prepare` wrote: vocabulary.json (of subwords with vocabulary.model), train.tokens,
/// valid.tokens, test.tokens and data.json, which says what the data was made of and repeats the hashes of the other
/// files, so that a mix of two preparations shows. Data of articles (prepare --articles) have train.articles,
/// valid.articles and test.articles as well (article_starts.hpp).

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/files/token_file.hpp"
#include "apps/data/text/article_rules.hpp"
#include "apps/data/text/text_rules.hpp"
#include "apps/data/vocabulary/vocabulary.hpp"

namespace engram::data {

inline constexpr std::string_view kDataFormat = "engram data";
inline constexpr int kDataVersion = 1;
inline constexpr std::string_view kDataFile = "data.json";
inline constexpr std::string_view kVocabularyFile = "vocabulary.json";
/// "train.tokens" for "train".
std::string token_file_name(std::string_view split);
/// "train.articles" for "train".
std::string article_file_name(std::string_view split);

/// How much text a split is, for losses that do not depend on what a token is.
struct TextAmount {
  std::int64_t words = 0;  ///< between white space (line_words.hpp)
  std::int64_t bytes = 0;  ///< 0: the tokens leave some of the text out, so that no loss is one of its bytes
};

class DataSet {
 public:
  /// Opens and checks all files. Throws FileError for a folder that is no data folder, a missing or damaged file, and
  /// files that were not made together.
  static DataSet open(const std::filesystem::path& folder);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  TokenKind kind() const { return vocabulary_.kind(); }
  /// The tokens of "train", "valid" or "test"; throws UsageError for another name.
  TokenView split(std::string_view name) const;
  /// Where the articles of a split start, in ascending order, the first at 0; each ends where the next starts, or with
  /// the split. Empty: the data know no articles.
  std::span<const std::int64_t> articles(std::string_view split) const;
  /// How articles became tokens; none: the data know no articles. Without the files and folders that they are from.
  const std::optional<ArticleRules>& article_rules() const { return article_rules_; }
  /// The token that a model is fed before the first one of an article: kSentenceEnd, or of subwords that of a line end;
  /// -1: the data know no articles.
  std::int32_t article_start_token() const;
  /// Whether words were lower-cased: A to Z as a to z.
  bool lower() const { return text_rules_.lower; }
  /// How the text became words, for texts that a model of the data reads.
  const TextRules& text_rules() const { return text_rules_; }
  /// None for data prepared by a version that did not count words.
  std::optional<TextAmount> text_amount(std::string_view split) const;
  /// Hash of the tokens of a split.
  std::uint64_t content_hash(std::string_view split) const;
  /// Identifies vocabulary, all splits and where their articles start; a checkpoint keeps it to tell whether it goes on
  /// with the same data.
  std::uint64_t hash() const;
  /// The rule that it was prepared by: enwik8, text8 or any; any for words.
  const std::string& rule() const { return rule_; }
  /// The sentence mark of data that has one before and one after each sentence, -1 for other data. A target that is
  /// this token and follows it begins a sentence, so that no model can miss it: perplexities with and without such
  /// targets differ ([transformer-xl 6.1], lm1b).
  std::int32_t doubled_mark() const { return doubled_mark_; }
  const std::filesystem::path& folder() const { return folder_; }

  /// Throws FileError naming both hashes unless the vocabulary is the one with this hash; `of` says whose it is, for
  /// example "the checkpoint 'runs/a'".
  void require_vocabulary(std::uint64_t hash, std::string_view of) const;
  /// require_vocabulary() of a whole vocabulary, with another message where already what a token is differs.
  void require_vocabulary(const Vocabulary& needed, std::string_view of) const;
  /// Throws UsageError unless tokens are of this kind; `because` says what needs it, for example "the configuration
  /// cuts its vocabulary into clusters of words (model.cutoffs)".
  void require_kind(TokenKind kind, std::string_view because) const;

 private:
  using TextAmounts = std::array<std::optional<TextAmount>, 3>;
  DataSet(std::filesystem::path folder, Vocabulary vocabulary, std::array<TokenFile, 3> files, std::string rule,
          std::int32_t doubled_mark, TextAmounts amounts);
  /// What data.json, `json`, says about the text, about articles, and their files.
  void read_rules(const nlohmann::json& json);
  void read_articles(const nlohmann::json& json);

  std::filesystem::path folder_;
  Vocabulary vocabulary_;
  std::array<TokenFile, 3> files_;
  std::string rule_;
  std::int32_t doubled_mark_ = -1;
  TextAmounts amounts_;
  std::optional<ArticleRules> article_rules_;
  std::array<std::vector<std::int64_t>, 3> articles_;
  TextRules text_rules_;
};

/// How the text of a folder became words, what text_rules_of() reads; as TextRules is made where the folder has no
/// data.json. Throws FileError for a file that is damaged.
TextRules read_text_rules(const std::filesystem::path& folder);

}  // namespace engram::data

#pragma once
/// Articles as tokens, before they have a vocabulary: every word has a provisional id, 4 bytes a token, so that files
/// are read once. Then their splits and the vocabulary of train.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/text/article_text.hpp"
#include "apps/data/text/corpus.hpp"
#include "apps/data/vocabulary/word_table.hpp"
#include "apps/data/vocabulary/word_vocabulary.hpp"

namespace engram::data {

struct CollectedArticle {
  std::string name;
  std::int64_t first = 0, tokens = 0;  ///< in CollectedArticles::ids()
  std::int64_t sentences = 0;
  std::int64_t bytes = 0, words = 0;  ///< of its text
  bool goes_on = false;               ///< a chapter of the book that the one before is of
  std::size_t split = 0;              ///< index in kSplitNames
};

class CollectedArticles final : public ArticleSink {
 public:
  /// Provisional ids of the marks.
  static constexpr std::int32_t kEndId = 0, kNumberId = 1, kUnknownId = 2;

  explicit CollectedArticles(bool sentence_end);
  void begin_article(std::string name, bool goes_on) override;
  void add_text(std::int64_t bytes, std::int64_t words) override;
  void add_sentence(std::vector<std::string>& words) override;
  /// Ends the last article. Empty ones are left out and counted.
  void finish() { end_article(true); }

  std::vector<CollectedArticle>& articles() { return articles_; }
  const std::vector<CollectedArticle>& articles() const { return articles_; }
  const std::vector<std::int32_t>& ids() const { return ids_; }
  const WordTable& words() const { return words_; }
  std::int64_t empty() const { return empty_; }

 private:
  void end_article(bool counted);

  bool sentence_end_;
  WordTable words_;
  std::vector<std::int32_t> ids_;
  std::vector<CollectedArticle> articles_;
  std::int64_t empty_ = 0;
};

/// A place in [0, 2^64) for an article: a pure function of seed and name.
std::uint64_t article_hash(std::uint64_t seed, std::string_view name);
/// The same of what the article has for a name: a hash of 64 bits.
std::uint64_t article_order(std::uint64_t seed, std::uint64_t hash);

/// Sets the splits: articles in the order of their hashes, equal ones in that of the vector, go to valid until it has
/// its share of all tokens, or as many articles as are `held_out`, then to test, and the rest to train. The chapters of
/// a book stay together. Throws FileError for a split that gets none.
void split_articles(std::vector<CollectedArticle>& articles, std::uint64_t seed, const Percentages& shares,
                    std::optional<std::int64_t> held_out = {});

struct ArticleVocabulary {
  WordVocabulary vocabulary;
  std::vector<std::int32_t> ids;  ///< of every provisional id; that of kUnknownWord for a word that was left out
  std::int64_t left_out = 0;      ///< different words of train that became kUnknownWord
};
/// A vocabulary that there is already, which has the three marks.
ArticleVocabulary given_vocabulary(const CollectedArticles& articles, const WordVocabulary& vocabulary);
/// The `most` most frequent words of train that it has at least `min_count` times, most frequent first and of equally
/// frequent ones the bytewise smaller first; the marks are among them whatever their counts. `most` is 0, for all of
/// them, or above 3, the number of marks.
ArticleVocabulary collect_vocabulary(const CollectedArticles& articles, std::int64_t most, std::int64_t min_count,
                                     bool sentence_end);

}  // namespace engram::data

#pragma once
/// What `engram prepare` is asked for.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "apps/data/files/prepare_watch.hpp"
#include "apps/data/text/article_rules.hpp"
#include "apps/data/text/corpus.hpp"
#include "apps/data/text/moses_words.hpp"
#include "apps/data/text/text_rules.hpp"
#include "apps/data/text/word_joiner.hpp"
#include "apps/data/text/word_rules.hpp"
#include "apps/data/vocabulary/byte_vocabulary.hpp"
#include "apps/data/vocabulary/token_kind.hpp"
#include "apps/data/vocabulary/vocabulary.hpp"

namespace engram::data {

/// How `engram prepare --kind bpe` gets its byte pairs.
struct SubwordRules {
  static constexpr std::int64_t kUsualVocabulary = 8000, kUsualSample = 100'000'000;
  std::optional<std::int64_t> vocabulary;  ///< subwords to learn; none: kUsualVocabulary
  std::optional<std::int64_t> sample;  ///< learned from about so many bytes of train, at least 1; none: kUsualSample
  std::filesystem::path model;         ///< of SentencePiece or another data folder, instead of learning one
  std::filesystem::path codes;         ///< of fastBPE or subword-nmt (merge_list.hpp), instead of learning
  std::filesystem::path list;          ///< subwords of the codes and their counts; none: those that train has
  /// Subwords of codes with a smaller count are left out, at least 1; none: none of a list is, and all of train are in.
  std::optional<std::int64_t> threshold;
  friend bool operator==(const SubwordRules&, const SubwordRules&) = default;
};

/// The vocabulary of a model, whose ids a text gets in the place of ids of its own.
struct GivenVocabulary {
  Vocabulary vocabulary;
  TextRules text{};  ///< how the text of the model's data became words
  std::string of;    ///< the run, checkpoint or data folder, for messages and data.json
};

/// Either `text`, which is split, or `train`, `valid` and `test` are given; an empty path is not given. Of subwords the
/// latter may be folders, whose files are read in the order of their names. Rules of a published corpus:
/// named_rules.hpp.
struct PrepareOptions {
  TokenKind kind = TokenKind::character;
  std::filesystem::path text;
  std::optional<Percentages> split;  ///< of `text` under the rule any; none: 90,5,5
  std::filesystem::path train, valid, test;
  std::filesystem::path out;  ///< DATA_DIR, made if it does not exist
  /// Ids are those of this vocabulary, which no option may decide then, and its rules of words are the text's:
  /// prepare() sets `kind`, `tokenizer` and of `words` end_of_line and sentences by it, and takes splits that are not
  /// given from one that is. Null: the text gets a vocabulary of its own.
  std::shared_ptr<const GivenVocabulary> given = {};
  // Of characters only.
  TextRule rule = TextRule::any;  ///< see corpus.hpp
  bool exact_bytes = false;       ///< never append an end token (rules enwik8 and any)
  bool drop_newlines = false;     ///< no newline is a token
  VocabularyFrom vocabulary_from = VocabularyFrom::train;
  ByteOrder byte_order = ByteOrder::seen;
  // Of words only.
  WordRules words;
  /// File of the vocabulary, one word a line, ids in the order of lines. `train`, `valid` and `test` may then be
  /// folders, whose files are read in the order of their names, and without `test` it is `valid`.
  std::filesystem::path word_list;
  /// Of words or subwords that are in articles: `train`, `valid` and `test` may then be folders, and without them the
  /// articles of ArticleRules::paths are split, by ArticleRules::held_out, by `split` or else kUsualArticlePercentages.
  /// Of `words` only min_count and lower are theirs: words that the vocabulary lacks always become kUnknownWord.
  std::optional<ArticleRules> articles;
  // Of subwords only.
  SubwordRules subwords;
  std::optional<MosesRules> tokenizer;  ///< lines become these words before they are cut; none: they stay as they are
  // Of words and subwords. Tokens do not depend on it.
  std::optional<WordJoin> join;  ///< how words that a model writes are joined; none: as the other rules say
  PrepareWatch watch;            ///< hears how far it is
};

/// Shares of train, valid and test of articles ([key-value-predict 5.2]).
inline constexpr Percentages kUsualArticlePercentages{90.4, 4.8, 4.8};

}  // namespace engram::data

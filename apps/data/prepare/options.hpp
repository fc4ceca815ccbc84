#pragma once
/// `engram prepare`: from text files to a data folder (data_set.hpp). Everything is read and checked before anything is
/// written, and all files are on the disk under partial names before the first one takes its name: whatever fails
/// before that, an older data set in the folder stays as it was. Words with the ids of a list are the exception to
/// reading first: their files, which may be larger than memory, are read piece by piece while partial files grow. So
/// are those of subwords, which are checked first and then read again.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/text/article_rules.hpp"
#include "apps/data/vocabulary/byte_vocabulary.hpp"
#include "apps/data/text/corpus.hpp"
#include "apps/data/files/prepare_watch.hpp"
#include "apps/data/vocabulary/token_kind.hpp"
#include "apps/data/text/word_rules.hpp"

namespace engram::data {

/// How `engram prepare --kind bpe` gets its byte pairs.
struct SubwordRules {
  static constexpr std::int64_t kUsualVocabulary = 8000, kUsualSample = 100'000'000;
  std::optional<std::int64_t> vocabulary;  ///< subwords to learn; none: kUsualVocabulary
  std::optional<std::int64_t> sample;  ///< learned from about so many bytes of train, at least 1; none: kUsualSample
  std::filesystem::path model;         ///< of SentencePiece, instead of learning one
  friend bool operator==(const SubwordRules&, const SubwordRules&) = default;
};

/// Either `text`, which is split, or `train`, `valid` and `test` are given; an empty path is not given. Rules of a
/// published corpus: named_rules.hpp.
struct PrepareOptions {
  TokenKind kind = TokenKind::character;
  std::filesystem::path text;
  std::optional<Percentages> split;  ///< of `text` under the rule any; none: 90,5,5
  std::filesystem::path train, valid, test;
  std::filesystem::path out;  ///< DATA_DIR, made if it does not exist
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
  /// Of words that are in articles: `train`, `valid` and `test` may then be folders, and without them the articles of
  /// ArticleRules::paths are split, by `split` or else kUsualArticlePercentages. Of `words` only min_count and lower
  /// are theirs: words that the vocabulary lacks always become kUnknownWord.
  std::optional<ArticleRules> articles;
  SubwordRules subwords;  ///< of subwords only
  PrepareWatch watch;     ///< hears how far it is
};

/// Shares of train, valid and test of articles (spec key-value-predict 5.2).
inline constexpr Percentages kUsualArticlePercentages{90.4, 4.8, 4.8};

struct SplitSummary {
  std::string_view name;
  std::string source;                 ///< file it came from
  std::size_t source_index = 0;       ///< among the files given
  std::int64_t source_count = 1;      ///< files, from source_index on
  std::int64_t first_byte = 0;        ///< where the text begins in its file
  std::int64_t bytes = 0;             ///< of text taken
  std::int64_t stripped = 0;          ///< spaces dropped at both ends (text8)
  std::int64_t newlines_dropped = 0;  ///< of the text taken, bytes that are no tokens
  bool end_appended = false;          ///< there is an end token at its end that the text has not
  std::int64_t tokens = 0;
  std::int64_t words = 0;          ///< of the text, between white space
  std::int64_t end_tokens = 0;     ///< of them, line ends or sentence marks; counted for words only
  std::int64_t certain_marks = 0;  ///< of them, marks of SentenceMarks::around straight after another one: sure to come
  std::int64_t unknown = 0;        ///< of them, words for which "<unk>" was put, or unknown subwords
  std::int64_t articles = 0;       ///< counted for data of articles only
  std::uint64_t articles_hash = 0;  ///< of their starts
  std::int64_t altered = 0;         ///< words or lines that subwords do not keep as they are, each counted once
  std::uint64_t content_hash = 0;

  /// The share of tokens that are words of the vocabulary.
  double coverage() const { return 1 - static_cast<double>(unknown) / static_cast<double>(tokens); }
};

struct PrepareSummary {
  TokenKind kind = TokenKind::character;
  std::array<SplitSummary, 3> splits;  ///< train, valid, test
  std::int64_t vocabulary_size = 0;    ///< V
  std::uint64_t vocabulary_hash = 0;
  std::vector<std::string> notes;                 ///< what the user should be told, one sentence each
  std::optional<ArticleFormat> article_format{};  ///< what all files of articles were read as; none: as several
};

/// Throws UsageError for options that are wrong or exclude each other, FileError for what is wrong with a text (see
/// corpus.hpp and word_corpus.hpp), a byte or word that the vocabulary lacks, and a folder that cannot be written or
/// holds other files.
PrepareSummary prepare(const PrepareOptions& options);

}  // namespace engram::data

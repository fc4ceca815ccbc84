#pragma once
/// What `engram prepare` made of which text.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/data/text/article_rules.hpp"
#include "apps/data/vocabulary/token_kind.hpp"

namespace engram::data {

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

}  // namespace engram::data

#pragma once
/// Questions of the Children's Book Test as tokens of a model ([key-value-predict 5.3]).

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/data/data_set.hpp"
#include "apps/data/text/article_rules.hpp"
#include "apps/data/text/cbt.hpp"

namespace engram {

struct TokenQuestion {
  using Candidates = std::array<std::int32_t, data::CbtQuestion::kCandidates>;

  /// What is read first: the token before an article, the sentences, and the query up to the blank. At least one token.
  std::vector<std::int32_t> prefix;
  Candidates candidates{};           ///< candidates that the vocabulary lacks are all the same
  std::vector<std::int32_t> suffix;  ///< the query behind the blank, and the end of the sentence where data have it
  std::size_t answer = 0;            ///< among the candidates
  std::int64_t words = 0;            ///< of sentences and query, without marks and the blank
  std::int64_t unknown_words = 0;    ///< those of them that the vocabulary lacks
  std::int64_t unknown_candidates = 0;
  bool unknown_answer = false;
};

/// Reads questions as the articles of a data set were read: their numbers, letters and ends of sentences. Words are
/// what is between white space, as in the books of the test, whatever the articles were.
class QuestionTokens {
 public:
  /// `data` must outlive this. Throws UsageError for data of anything but articles in words.
  explicit QuestionTokens(const data::DataSet& data);

  TokenQuestion operator()(const data::CbtQuestion& question) const;

 private:
  /// The ids of a sentence; returns how many are those of unknown words.
  std::int64_t append(std::vector<std::string> words, std::vector<std::int32_t>& ids) const;

  const data::WordVocabulary* vocabulary_;
  data::ArticleWords rules_;
  std::int32_t start_, unknown_;
  bool sentence_end_;
};

}  // namespace engram

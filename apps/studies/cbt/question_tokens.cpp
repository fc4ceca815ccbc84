#include "apps/studies/cbt/question_tokens.hpp"

#include <utility>

#include "core/error.hpp"

namespace engram {
namespace {

const data::ArticleRules& rules_of(const data::DataSet& data) {
  if (!data.article_rules() || data.kind() != data::TokenKind::word)
    throw UsageError(text("cbt: --data must be of articles of words, as the recurrent model was trained on, got '",
                          data.folder().string(),
                          "' without\n  engram prepare --kind word --articles makes such data"));
  return *data.article_rules();
}

}  // namespace

QuestionTokens::QuestionTokens(const data::DataSet& data)
    : vocabulary_(data.vocabulary().words()),
      rules_(data.lower(), rules_of(data).keep_numbers, true),
      start_(data.article_start_token()),
      unknown_(vocabulary_->unknown_token()),
      sentence_end_(rules_of(data).sentence_end) {
  if (unknown_ < 0)
    throw UsageError(text("cbt: the vocabulary must have ", data::kUnknownWord, " for words that it lacks, got '",
                          data.folder().string(), "' without"));
}

std::int64_t QuestionTokens::append(std::vector<std::string> words, std::vector<std::int32_t>& ids) const {
  rules_.normalise(words);
  std::int64_t unknown = 0;
  for (const std::string& word : words) {
    const std::int32_t id = vocabulary_->id_of(word);
    ids.push_back(id < 0 ? unknown_ : id);
    if (ids.back() == unknown_) ++unknown;
  }
  return unknown;
}

TokenQuestion QuestionTokens::operator()(const data::CbtQuestion& question) const {
  TokenQuestion tokens;
  const auto read = [&](std::vector<std::string> words, std::vector<std::int32_t>& ids) {
    const std::ptrdiff_t before = std::ssize(ids);
    tokens.unknown_words += append(std::move(words), ids);
    tokens.words += std::ssize(ids) - before;
  };
  tokens.prefix.push_back(start_);
  for (const std::vector<std::string>& sentence : question.sentences) {
    read(sentence, tokens.prefix);
    if (sentence_end_) tokens.prefix.push_back(start_);
  }
  const auto blank = question.query.begin() + static_cast<std::ptrdiff_t>(question.blank);
  read({question.query.begin(), blank}, tokens.prefix);
  read({blank + 1, question.query.end()}, tokens.suffix);
  if (sentence_end_) tokens.suffix.push_back(start_);

  std::vector<std::int32_t> candidate;
  for (std::size_t i = 0; i < question.candidates.size(); ++i) {
    candidate.clear();
    tokens.unknown_candidates += append({question.candidates.at(i)}, candidate);
    tokens.candidates.at(i) = candidate.front();
  }
  tokens.answer = question.answer_index;
  tokens.unknown_answer = tokens.candidates.at(tokens.answer) == unknown_;
  return tokens;
}

}  // namespace engram

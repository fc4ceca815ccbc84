#include "apps/studies/cbt/question_results.hpp"

#include <algorithm>
#include <numeric>

namespace engram {

BestCandidates::BestCandidates(const CandidateScores& scores)
    : first(static_cast<std::size_t>(std::ranges::max_element(scores) - scores.begin())),
      count(std::ranges::count(scores, scores.at(first))) {}

double QuestionResults::accuracy() const {
  return questions > 0 ? static_cast<double>(correct) / static_cast<double>(questions) : 0;
}

double QuestionResults::tie_aware_accuracy() const {
  double accuracy = 0;
  for (std::size_t m = 1; m < among.size() && questions > 0; ++m)
    accuracy += static_cast<double>(among.at(m)) / (static_cast<double>(m) * static_cast<double>(questions));
  return accuracy;
}

std::int64_t QuestionResults::blocks_left_out() const {
  return std::accumulate(left_out.begin(), left_out.end(), std::int64_t{0});
}

void QuestionResults::add(const TokenQuestion& question, const CandidateScores& scores) {
  const BestCandidates best(scores);
  ++questions;
  correct += best.first == question.answer ? 1 : 0;
  ties += best.count > 1 ? 1 : 0;
  if (best.has(scores, question.answer)) ++among.at(static_cast<std::size_t>(best.count));
  words += question.words;
  unknown_words += question.unknown_words;
  unknown_candidates += question.unknown_candidates;
  unknown_answers += question.unknown_answer ? 1 : 0;
}

void QuestionResults::add(const QuestionResults& other) {
  questions += other.questions;
  correct += other.correct;
  ties += other.ties;
  for (std::size_t m = 0; m < among.size(); ++m) among.at(m) += other.among.at(m);
  words += other.words;
  unknown_words += other.unknown_words;
  unknown_candidates += other.unknown_candidates;
  unknown_answers += other.unknown_answers;
  replaced += other.replaced;
  for (std::size_t i = 0; i < left_out.size(); ++i) left_out.at(i) += other.left_out.at(i);
}

}  // namespace engram

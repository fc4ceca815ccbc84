#pragma once
/// How many questions were answered, and of what that is known.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "apps/data/text/cbt.hpp"
#include "apps/studies/cbt/question_scores.hpp"
#include "apps/studies/cbt/question_tokens.hpp"

namespace engram {

/// The candidates of the highest score.
struct BestCandidates {
  explicit BestCandidates(const CandidateScores& scores);
  bool has(const CandidateScores& scores, std::size_t candidate) const {
    return scores.at(candidate) == scores.at(first);
  }

  std::size_t first = 0;   ///< what is predicted: of several the lowest index
  std::int64_t count = 1;  ///< above 1: a tie
};

struct QuestionResults {
  std::string name;  ///< of the file
  std::int64_t questions = 0;
  std::int64_t correct = 0;  ///< the prediction is the answer
  std::int64_t ties = 0;     ///< several candidates have the highest score
  /// [m]: answers that are one of m candidates with the highest score.
  std::array<std::int64_t, data::CbtQuestion::kCandidates + 1> among{};
  std::int64_t words = 0, unknown_words = 0;
  std::int64_t unknown_candidates = 0;
  std::int64_t unknown_answers = 0;
  std::int64_t replaced = 0;  ///< bytes of the file that were no UTF-8
  std::array<std::int64_t, data::kCbtProblems> left_out{};

  /// Of the questions, correct ones; 0 without questions.
  double accuracy() const;
  /// An answer that is one of m with the highest score counts 1 / m.
  double tie_aware_accuracy() const;
  std::int64_t blocks_left_out() const;
  void add(const TokenQuestion& question, const CandidateScores& scores);
  /// Adds the results of another file.
  void add(const QuestionResults& other);
};

}  // namespace engram

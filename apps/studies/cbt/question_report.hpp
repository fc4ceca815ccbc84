#pragma once
/// What `engram cbt` says of a model's answers.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "apps/studies/cbt/question_results.hpp"

namespace engram {

struct QuestionReport {
  std::string foreign;  ///< the file of scores of another program; empty: a model's
  std::string checkpoint;
  std::int64_t step = 0;
  CandidateScore score = CandidateScore::whole;
  double questions_per_second = 0;
  std::vector<QuestionResults> files;
  QuestionResults all;
  std::string candidates;  ///< the lines of csv_of(), as candidate_lines() makes them
};

/// What csv_of() begins with: the names of its columns, as a line.
inline constexpr std::string_view kCandidateColumns = "file,block,line,candidate,ln_p,answer,predicted\n";
/// A line for every candidate: file, block and line as CbtReader counts them, the candidate as the file has it, its
/// ln p, 1 for the answer, 1 for what is predicted.
std::string candidate_lines(const std::string& file, const data::CbtQuestion& question, const CandidateScores& scores);

/// A row for each file, and one of all of them where there are several; then what was left out of each.
std::string table_of(const QuestionReport& report);
std::string csv_of(const QuestionReport& report);
/// {"checkpoint", "step", "score", "questions_per_second"}, or {"scores"} of another program, and, for each of "files"
/// and for "all", {"name", "questions", "correct", "accuracy", "ties", "tie_aware_accuracy", "words", "unknown_words",
/// "unknown_candidates", "unknown_answers", "left_out": {rule: blocks}}; accuracies are null without questions.
nlohmann::json json_of(const QuestionReport& report);

}  // namespace engram

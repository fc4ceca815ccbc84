#pragma once
/// Candidates of the Children's Book Test that another program scored: Kneser-Ney models by KenLM, for example. What
/// it is to score are the queries with each candidate in the blank, a line for each; what it says is a number for each.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "apps/data/text/cbt.hpp"
#include "apps/studies/cbt/question_results.hpp"

namespace engram {

/// Numbers of a file, one a line, of the candidates of one question after the other.
class ForeignScores {
 public:
  /// Throws FileError for a file that cannot be read.
  explicit ForeignScores(std::filesystem::path path);

  /// Those of the next question. Throws FileError naming the line for what is no number, or not a number or infinite
  /// above, and for a file that has none left.
  CandidateScores next();
  /// Throws FileError where numbers are left.
  void end() const;

 private:
  std::filesystem::path path_;
  std::string bytes_;
  std::size_t at_ = 0;
  std::int64_t line_ = 0;
};

/// The query with each of the candidates in the blank, ten lines in their order.
std::string candidate_sentences(const data::CbtQuestion& question);

/// candidate_sentences() of all questions of a file. `questions` gets how many more there are. Throws as CbtReader.
std::string file_sentences(const std::filesystem::path& path, bool lenient, std::int64_t& questions);

/// Reads a file's questions and judges them by the next scores. Words are counted, but none is unknown. Candidates'
/// lines are added to `candidates`, if there is one. Throws as CbtReader and ForeignScores do.
QuestionResults judge_file(const std::filesystem::path& path, bool lenient, ForeignScores& scores,
                           std::string* candidates);

}  // namespace engram

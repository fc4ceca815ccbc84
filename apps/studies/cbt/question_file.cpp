#include "apps/studies/cbt/question_file.hpp"

#include <fstream>
#include <system_error>

#include "apps/data/files/open_stream.hpp"

namespace engram {

std::int64_t count_questions(const std::vector<std::string>& paths) {
  std::int64_t questions = 0;
  std::error_code ignored;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_regular_file(path, ignored)) return 0;
    std::ifstream file = data::open_stream(path);
    for (std::string line; std::getline(file, line);) questions += line.starts_with("21 ") ? 1 : 0;
  }
  return questions;
}

QuestionResults answer_file(const std::filesystem::path& path, bool lenient, const QuestionTokens& tokens_of,
                            QuestionScorer& scorer, std::string* candidates,
                            const std::function<void(std::int64_t)>& watch) {
  constexpr std::size_t kAtOnce = 1024;
  QuestionResults results;
  results.name = path.filename().string();
  data::CbtReader reader(path, lenient);
  std::vector<data::CbtQuestion> asked;
  std::vector<TokenQuestion> questions;
  const auto score = [&] {
    const std::vector<CandidateScores> scores =
        scorer(questions, [&](auto answered, auto) { watch(results.questions + answered); });
    for (std::size_t i = 0; i < questions.size(); ++i) results.add(questions[i], scores[i]);
    for (std::size_t i = 0; i < asked.size(); ++i) *candidates += candidate_lines(results.name, asked[i], scores[i]);
    questions.clear();
    asked.clear();
  };
  for (data::CbtQuestion question; reader.next(question);) {
    questions.push_back(tokens_of(question));
    if (candidates != nullptr) asked.push_back(question);
    if (questions.size() == kAtOnce) score();
  }
  score();
  for (std::size_t i = 0; i < data::kCbtProblems; ++i)
    results.left_out.at(i) = reader.skipped(static_cast<data::CbtProblem>(i));
  results.replaced = reader.replaced();
  return results;
}

}  // namespace engram

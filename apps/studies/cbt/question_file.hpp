#pragma once
/// Files of questions, answered.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "apps/studies/cbt/question_report.hpp"

namespace engram {

/// About how many questions there are in files, for progress: 0 where one can be read once only.
std::int64_t count_questions(const std::vector<std::string>& paths);

/// Reads and answers questions, so many at a time. `lenient`: damaged blocks are left out. Their candidate_lines() are
/// added to `candidates`, if there is one. `watch` is told how many of this file's have been answered. Throws as
/// CbtReader and QuestionScorer do.
QuestionResults answer_file(const std::filesystem::path& path, bool lenient, const QuestionTokens& tokens_of,
                            QuestionScorer& scorer, std::string* candidates,
                            const std::function<void(std::int64_t)>& watch);

}  // namespace engram

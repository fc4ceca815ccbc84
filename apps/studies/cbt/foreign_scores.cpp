#include "apps/studies/cbt/foreign_scores.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "apps/data/files/read_file.hpp"
#include "apps/studies/cbt/question_report.hpp"
#include "core/error.hpp"

namespace engram {

ForeignScores::ForeignScores(std::filesystem::path path) : path_(std::move(path)), bytes_(data::read_bytes(path_)) {}

CandidateScores ForeignScores::next() {
  CandidateScores scores{};
  for (double& score : scores) {
    if (at_ >= bytes_.size())
      throw FileError(text("cbt: '", path_.string(), "' must have a number for each of the ",
                           data::CbtQuestion::kCandidates, " candidates of every question, ends after line ", line_));
    ++line_;
    const std::size_t end = std::min(bytes_.find('\n', at_), bytes_.size());
    std::string_view written = std::string_view(bytes_).substr(at_, end - at_);
    at_ = end + 1;
    const std::size_t begin = std::min(written.find_first_not_of(" \t\r"), written.size());
    written = written.substr(begin, written.find_last_not_of(" \t\r") + 1 - begin);
    const auto [rest, error] = std::from_chars(written.data(), written.data() + written.size(), score);
    const bool whole = error == std::errc() && rest == written.data() + written.size();
    if (!whole || std::isnan(score) || score == std::numeric_limits<double>::infinity())
      throw FileError(text("cbt: line ", line_, " of '", path_.string(),
                           "' must be a number, the higher the likelier, got '", written, "'"));
  }
  return scores;
}

void ForeignScores::end() const {
  if (bytes_.find_first_not_of(" \t\r\n", std::min(at_, bytes_.size())) != std::string::npos)
    throw FileError(
        text("cbt: '", path_.string(), "' must end with the scores of the last question, line ", line_, ", has more"));
}

std::string candidate_sentences(const data::CbtQuestion& question) {
  std::string lines;
  for (const std::string& candidate : question.candidates) {
    for (std::size_t i = 0; i < question.query.size(); ++i)
      lines += (i == 0 ? "" : " ") + (i == question.blank ? candidate : question.query[i]);
    lines += '\n';
  }
  return lines;
}

std::string file_sentences(const std::filesystem::path& path, bool lenient, std::int64_t& questions) {
  std::string lines;
  data::CbtReader reader(path, lenient);
  for (data::CbtQuestion question; reader.next(question); ++questions) lines += candidate_sentences(question);
  return lines;
}

QuestionResults judge_file(const std::filesystem::path& path, bool lenient, ForeignScores& scores,
                           std::string* candidates) {
  QuestionResults results;
  results.name = path.filename().string();
  data::CbtReader reader(path, lenient);
  for (data::CbtQuestion question; reader.next(question);) {
    TokenQuestion known;
    known.answer = question.answer_index;
    for (const std::vector<std::string>& sentence : question.sentences) known.words += std::ssize(sentence);
    known.words += std::ssize(question.query) - 1;
    const CandidateScores of_question = scores.next();
    results.add(known, of_question);
    if (candidates != nullptr) *candidates += candidate_lines(results.name, question, of_question);
  }
  for (std::size_t i = 0; i < data::kCbtProblems; ++i)
    results.left_out.at(i) = reader.skipped(static_cast<data::CbtProblem>(i));
  results.replaced = reader.replaced();
  return results;
}

}  // namespace engram

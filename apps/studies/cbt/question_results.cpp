#include "apps/studies/cbt/question_results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "apps/report/text_table.hpp"
#include "core/files/json.hpp"

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

nlohmann::json json_of(const QuestionResults& results) {
  nlohmann::json problems = nlohmann::json::object();
  for (std::size_t i = 0; i < data::kCbtProblems; ++i)
    if (results.left_out.at(i) > 0)
      problems[std::string(rule_of(static_cast<data::CbtProblem>(i)))] = results.left_out.at(i);
  nlohmann::json json{{"name", results.name},
                      {"questions", results.questions},
                      {"correct", results.correct},
                      {"ties", results.ties},
                      {"words", results.words},
                      {"unknown_words", results.unknown_words},
                      {"unknown_candidates", results.unknown_candidates},
                      {"unknown_answers", results.unknown_answers},
                      {"replaced_bytes", results.replaced},
                      {"left_out", problems}};
  const bool any = results.questions > 0;
  json["accuracy"] = any ? nlohmann::json(results.accuracy()) : nlohmann::json();
  json["tie_aware_accuracy"] = any ? nlohmann::json(results.tie_aware_accuracy()) : nlohmann::json();
  return json;
}

std::string_view candidates_csv_names() { return "file,block,line,candidate,ln_p,answer,predicted\n"; }

std::string candidates_csv(const std::string& file, const data::CbtQuestion& question, const CandidateScores& scores) {
  const BestCandidates best(scores);
  std::string lines;
  for (std::size_t i = 0; i < scores.size(); ++i)
    lines += fmt::format("{},{},{},{},{:.9g},{},{}\n", csv_field(file), question.block, question.line,
                         csv_field(question.candidates.at(i)), scores.at(i), i == question.answer_index ? 1 : 0,
                         i == best.first ? 1 : 0);
  return lines;
}

std::string question_table(const std::vector<QuestionResults>& files, const QuestionResults& all) {
  std::vector<TableColumn> columns{{.heading = "file", .cells = {}, .left = true},
                                   {"questions", {}},
                                   {"accuracy", {}},
                                   {"ties", {}},
                                   {"tie-aware", {}},
                                   {"words", {}},
                                   {"unknown", {}},
                                   {"unknown candidates", {}},
                                   {"unknown answers", {}}};
  const auto add = [&](const QuestionResults& row) {
    const bool any = row.questions > 0;
    const std::string cells[] = {row.name,
                                 std::to_string(row.questions),
                                 any ? fmt::format("{:.4f}", row.accuracy()) : "-",
                                 std::to_string(row.ties),
                                 any ? fmt::format("{:.4f}", row.tie_aware_accuracy()) : "-",
                                 std::to_string(row.words),
                                 std::to_string(row.unknown_words),
                                 std::to_string(row.unknown_candidates),
                                 std::to_string(row.unknown_answers)};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  };
  for (const QuestionResults& file : files) add(file);
  if (files.size() > 1) add(all);
  std::string lines = aligned(columns);
  for (const QuestionResults& file : files) {
    for (std::size_t i = 0; i < data::kCbtProblems; ++i)
      if (const std::int64_t blocks = file.left_out.at(i); blocks > 0)
        lines += fmt::format("{}: {} {} left out: {}\n", file.name, blocks, blocks == 1 ? "block" : "blocks",
                             rule_of(static_cast<data::CbtProblem>(i)));
    if (file.replaced > 0)
      lines += fmt::format("{}: {} bytes that are no UTF-8 were replaced by U+FFFD\n", file.name, file.replaced);
  }
  return lines;
}

}  // namespace engram

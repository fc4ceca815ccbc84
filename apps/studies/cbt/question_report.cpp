#include "apps/studies/cbt/question_report.hpp"

#include <fmt/format.h>

#include "apps/report/text_table.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

nlohmann::json results_json(const QuestionResults& results) {
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

std::string files_table(const std::vector<QuestionResults>& files, const QuestionResults& all) {
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

}  // namespace

std::string candidate_lines(const std::string& file, const data::CbtQuestion& question, const CandidateScores& scores) {
  const BestCandidates best(scores);
  std::string lines;
  for (std::size_t i = 0; i < scores.size(); ++i)
    lines += fmt::format("{},{},{},{},{:.9g},{},{}\n", csv_field(file), question.block, question.line,
                         csv_field(question.candidates.at(i)), scores.at(i), i == question.answer_index ? 1 : 0,
                         i == best.first ? 1 : 0);
  return lines;
}

std::string table_of(const QuestionReport& report) {
  if (!report.foreign.empty())
    return fmt::format("candidates ranked by the scores of '{}'\n", report.foreign) +
           files_table(report.files, report.all);
  return fmt::format("{} at step {}, candidates ranked by {}, {:.1f} questions/s\n", report.checkpoint, report.step,
                     report.score == CandidateScore::word ? "the word alone" : "the whole sentence",
                     report.questions_per_second) +
         files_table(report.files, report.all);
}

std::string csv_of(const QuestionReport& report) { return std::string(kCandidateColumns) + report.candidates; }

nlohmann::json json_of(const QuestionReport& report) {
  nlohmann::json object{{"files", nlohmann::json::array()}, {"all", results_json(report.all)}};
  if (report.foreign.empty()) {
    object["checkpoint"] = report.checkpoint;
    object["step"] = report.step;
    object["score"] = report.score == CandidateScore::word ? "word" : "whole";
    object["questions_per_second"] = report.questions_per_second;
  } else {
    object["scores"] = report.foreign;
  }
  for (const QuestionResults& file : report.files) object["files"].push_back(results_json(file));
  return object;
}

}  // namespace engram

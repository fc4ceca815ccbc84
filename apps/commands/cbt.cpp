#include "apps/commands/commands.hpp"
#include "core/stopwatch.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "apps/commands/model_arguments.hpp"
#include "apps/commands/output.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/commands/shared_options.hpp"
#include "apps/data/text/cbt.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/studies/cbt/question_results.hpp"
#include "apps/studies/cbt/question_scores.hpp"
#include "apps/studies/cbt/question_tokens.hpp"
#include "apps/terminal/terminal.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

struct CbtArguments {
  ModelArguments model;
  std::string data;
  std::vector<std::string> questions;
  std::string score = "whole";
  std::string csv, carry;
  int batch = 32;
  bool lenient = false, json = false;
};

RecurrentModel& recurrent_model(TrainedModel& trained) {
  auto* const model = dynamic_cast<RecurrentModel*>(&trained.model());
  if (model == nullptr)
    throw UsageError(
        text("cbt: needs a model of family recurrent, got one of family ", name_of(trained.config().model.family)));
  return *model;
}

/// About how many questions there are in files, for progress: 0 where one can be read once only.
std::int64_t count_questions(const std::vector<std::string>& paths) {
  std::int64_t questions = 0;
  std::error_code ignored;
  for (const std::string& path : paths) {
    if (!std::filesystem::is_regular_file(path, ignored)) return 0;
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) questions += line.starts_with("21 ") ? 1 : 0;
  }
  return questions;
}

/// Questions are read, and answered, so many at a time. What --csv is to hold of them is added to `csv`. `watch` is
/// told how many of this file's have been answered.
QuestionResults answer(const std::filesystem::path& path, const CbtArguments& arguments,
                       const QuestionTokens& tokens_of, QuestionScorer& scorer, std::string& csv,
                       const std::function<void(std::int64_t)>& watch) {
  constexpr std::size_t kAtOnce = 1024;
  QuestionResults results;
  results.name = path.filename().string();
  data::CbtReader reader(path, arguments.lenient);
  std::vector<data::CbtQuestion> asked;
  std::vector<TokenQuestion> questions;
  const auto score = [&] {
    const std::vector<CandidateScores> scores =
        scorer(questions, [&](auto answered, auto) { watch(results.questions + answered); });
    for (std::size_t i = 0; i < questions.size(); ++i) results.add(questions[i], scores[i]);
    for (std::size_t i = 0; i < asked.size(); ++i) csv += candidates_csv(results.name, asked[i], scores[i]);
    questions.clear();
    asked.clear();
  };
  for (data::CbtQuestion question; reader.next(question);) {
    questions.push_back(tokens_of(question));
    if (!arguments.csv.empty()) asked.push_back(question);
    if (questions.size() == kAtOnce) score();
  }
  score();
  for (std::size_t i = 0; i < data::kCbtProblems; ++i)
    results.left_out.at(i) = reader.skipped(static_cast<data::CbtProblem>(i));
  results.replaced = reader.replaced();
  return results;
}

void run_cbt(const CbtArguments& arguments) {
  const ContextOptions context{.memory = {}, .clamp = {}, .visibility = {}, .carry = carry_option(arguments.carry)};
  check_output_file("cbt: --csv", arguments.csv, {candidates_csv_names()});
  WorkProgress progress(text("reading '", arguments.model.run, "'"));
  OpenedModel opened(arguments.model, "cbt", [&context](ModelOptions& model) { context.apply(model, "cbt"); });
  TrainedModel& trained = opened.trained;
  RecurrentModel& model = recurrent_model(trained);
  const data::DataSet data = opened.open_data(arguments.data);
  const QuestionTokens tokens_of(data);
  QuestionScorer scorer({model, opened.runtime, trained.dtype()},
                        arguments.score == "word" ? CandidateScore::word : CandidateScore::whole, arguments.batch,
                        trained.config().training.block);

  const std::int64_t expected = is_line_terminal() ? count_questions(arguments.questions) : 0;
  progress.begin("answered", "questions");
  const Stopwatch watch;
  std::vector<QuestionResults> files;
  QuestionResults all;
  all.name = "all";
  std::string csv(candidates_csv_names());
  for (const std::string& path : arguments.questions) {
    files.push_back(answer(path, arguments, tokens_of, scorer, csv, [&, before = all.questions](std::int64_t answered) {
      progress.at(before + answered, expected);
    }));
    all.add(files.back());
  }
  const double seconds = watch.seconds();
  progress.end();
  if (all.questions == 0)
    throw FileError(text("cbt: there must be a question to answer, got ", files.size(),
                         files.size() == 1 ? " file" : " files", " without any (", all.blocks_left_out(),
                         " blocks left out)"));
  if (!arguments.csv.empty()) write_durably(arguments.csv, csv);
  const double per_second = static_cast<double>(all.questions) / seconds;

  if (arguments.json) {
    nlohmann::json object{
        {"checkpoint", trained.path().string()}, {"step", trained.step()},           {"score", arguments.score},
        {"questions_per_second", per_second},    {"files", nlohmann::json::array()}, {"all", json_of(all)}};
    for (const QuestionResults& file : files) object["files"].push_back(json_of(file));
    return print_json(object);
  }
  print(fmt::format("{} at step {}, candidates ranked by {}, {:.1f} questions/s\n", trained.path().string(),
                    trained.step(), arguments.score == "word" ? "the word alone" : "the whole sentence", per_second));
  print(question_table(files, all));
}

}  // namespace

Command* add_cbt_command(Command& program) {
  Command* command = program.add_subcommand("cbt", "answer questions of the Children's Book Test (recurrent models)");
  const auto arguments = std::make_shared<CbtArguments>();
  arguments->model.add_run(*command);
  command
      ->add_option("--data", arguments->data,
                   "data folder that the model was trained on: how its words were read is how questions are")
      ->required();
  command->add_option("--questions", arguments->questions, "files of questions, cbtest_NE_test_2500ex.txt and others")
      ->required();
  command
      ->add_option("--score", arguments->score,
                   "what candidates are ranked by: ln p of the whole query with the candidate in it (whole), or of the "
                   "word alone (word)")
      ->one_of({"whole", "word"})
      ->capture_default_str();
  add_carry_option(*command, arguments->carry);
  command->add_flag("--lenient", arguments->lenient,
                    "leave damaged blocks out and count them; otherwise the first is an error");
  command->add_option("--batch", arguments->batch, "questions side by side; does not change results")
      ->positive()
      ->capture_default_str();
  command->add_option("--csv", arguments->csv, "write every candidate's ln p, and which is predicted, to this file");
  arguments->model.add_options(*command);
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments] { run_cbt(*arguments); });
  return command;
}

}  // namespace engram

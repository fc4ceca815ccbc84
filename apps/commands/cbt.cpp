#include "apps/commands/commands.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "apps/commands/model_arguments.hpp"
#include "apps/commands/output.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/commands/report_output.hpp"
#include "apps/commands/shared_options.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/studies/cbt/foreign_scores.hpp"
#include "apps/studies/cbt/question_file.hpp"
#include "apps/terminal/terminal.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"
#include "core/stopwatch.hpp"

namespace engram {
namespace {

struct CbtArguments {
  ModelArguments model;
  std::string data;
  std::vector<std::string> questions;
  std::string score = "whole";
  std::string carry;
  std::string foreign, sentences;
  ReportOutput output;
  int batch = 32;
  bool lenient = false;
};

void require_recurrent(const ModelOptions& model) {
  if (model.family != ModelFamily::recurrent)
    throw UsageError(text("cbt: needs a model of family recurrent, got one of family ", name_of(model.family)));
}

void require_questions(const QuestionReport& report) {
  if (report.all.questions == 0)
    throw FileError(text("cbt: there must be a question to answer, got ", report.files.size(),
                         report.files.size() == 1 ? " file" : " files", " without any (", report.all.blocks_left_out(),
                         " blocks left out)"));
}

/// --sentences.
void write_sentences(const CbtArguments& arguments) {
  check_output_file("cbt: --sentences", arguments.sentences, {""});
  std::string lines;
  std::int64_t questions = 0;
  for (const std::string& path : arguments.questions) lines += file_sentences(path, arguments.lenient, questions);
  write_durably(arguments.sentences, lines);
  if (arguments.output.json) return print_json({{"questions", questions}, {"sentences", arguments.sentences}});
  print_report(text(questions, questions == 1 ? " question" : " questions", ", ", data::CbtQuestion::kCandidates,
                    " lines each, are in '", arguments.sentences, "'\n"));
}

/// --scores.
void judge_foreign(const CbtArguments& arguments) {
  arguments.output.check("cbt", {kCandidateColumns});
  QuestionReport report;
  report.foreign = arguments.foreign;
  report.all.name = "all";
  ForeignScores scores(arguments.foreign);
  for (const std::string& path : arguments.questions) {
    report.files.push_back(
        judge_file(path, arguments.lenient, scores, arguments.output.csv.empty() ? nullptr : &report.candidates));
    report.all.add(report.files.back());
  }
  scores.end();
  require_questions(report);
  arguments.output.show(report);
}

/// What --scores and --sentences do without is refused beside them, and what a model needs is asked for.
void require_ways(const Command& command, const CbtArguments& arguments) {
  const bool foreign = !arguments.foreign.empty() || !arguments.sentences.empty();
  if (!foreign && (arguments.model.run.empty() || arguments.data.empty()))
    throw UsageError(text("cbt: a run and --data must be given, or --scores of another program, got ",
                          arguments.model.run.empty() ? "no run" : "no --data"));
  if (foreign && (!arguments.model.run.empty() || !arguments.data.empty()))
    throw UsageError(text("cbt: ", arguments.foreign.empty() ? "--sentences" : "--scores",
                          " must be given without a run and --data, got '",
                          arguments.model.run.empty() ? arguments.data : arguments.model.run, "'"));
  if (!foreign) return;
  const std::string_view way = arguments.foreign.empty() ? "--sentences" : "--scores";
  for (const char* option : {"--score", "--carry", "--batch", "--best", "--device", "--dtype", "--threads"})
    if (command.count(option) > 0)
      throw UsageError(text("cbt: ", option, " is for a model's answers, got it with ", way, ", which has no model"));
  if (arguments.foreign.empty() && command.count("--csv") > 0)
    throw UsageError("cbt: --csv is for candidates with scores, got it with --sentences, which gives none");
}

void run_cbt(const Command& command, const CbtArguments& arguments) {
  require_ways(command, arguments);
  if (!arguments.sentences.empty()) return write_sentences(arguments);
  if (!arguments.foreign.empty()) return judge_foreign(arguments);
  const ContextOptions context{.memory = {}, .clamp = {}, .visibility = {}, .carry = carry_option(arguments.carry)};
  arguments.output.check("cbt", {kCandidateColumns});
  WorkProgress progress(text("reading '", arguments.model.run, "'"));
  OpenedModel opened(arguments.model, "cbt", [&context](ModelOptions& model) { context.apply(model, "cbt"); });
  TrainedModel& trained = opened.trained;
  require_recurrent(trained.config().model);
  const data::DataSet data = opened.open_data(arguments.data);
  const QuestionTokens tokens_of(data);
  QuestionReport report{.checkpoint = trained.path().string(),
                        .step = trained.step(),
                        .score = arguments.score == "word" ? CandidateScore::word : CandidateScore::whole,
                        .files = {},
                        .all = {},
                        .candidates = {}};
  QuestionScorer scorer(trained.placed_as<RecurrentModel>(), report.score, arguments.batch,
                        trained.config().training.block);

  const std::int64_t expected = is_line_terminal() ? count_questions(arguments.questions) : 0;
  progress.begin("answered", "questions");
  const Stopwatch watch;
  report.all.name = "all";
  for (const std::string& path : arguments.questions) {
    report.files.push_back(answer_file(
        path, arguments.lenient, tokens_of, scorer, arguments.output.csv.empty() ? nullptr : &report.candidates,
        [&, before = report.all.questions](std::int64_t answered) { progress.at(before + answered, expected); }));
    report.all.add(report.files.back());
  }
  report.questions_per_second = static_cast<double>(report.all.questions) / watch.seconds();
  progress.end();
  require_questions(report);
  arguments.output.show(report);
}

}  // namespace

Command* add_cbt_command(Command& program) {
  Command* command = program.add_subcommand("cbt", "answer questions of the Children's Book Test (recurrent models)");
  const auto arguments = std::make_shared<CbtArguments>();
  command->add_option("run", arguments->model.run, "folder of a run, or a checkpoint file");
  command->add_option("--data", arguments->data,
                      "data folder that the model was trained on: how its words were read is how questions are");
  command->add_option("--questions", arguments->questions, "files of questions, cbtest_NE_test_2500ex.txt and others")
      ->required();
  command
      ->add_option("--score", arguments->score,
                   "what candidates are ranked by: ln p of the whole query with the candidate in it (whole), or of the "
                   "word alone (word)")
      ->one_of({"whole", "word"})
      ->capture_default_str();
  add_carry_option(*command, arguments->carry);
  Option* sentences =
      command->add_option("--sentences", arguments->sentences,
                          "instead of a run: write every query with each candidate in its blank, a line each, to this "
                          "file, for another program to score");
  sentences->value_name("FILE");
  command
      ->add_option("--scores", arguments->foreign,
                   "instead of a run: what that program said of them, a number a line, the higher the likelier")
      ->value_name("FILE")
      ->excludes(sentences);
  command->add_flag("--lenient", arguments->lenient,
                    "leave damaged blocks out and count them; otherwise the first is an error");
  command->add_option("--batch", arguments->batch, "questions side by side; does not change results")
      ->positive()
      ->capture_default_str();
  command->add_option("--csv", arguments->output.csv,
                      "write every candidate's ln p, and which is predicted, to this file");
  arguments->model.add_options(*command);
  arguments->output.add_json(*command);
  command->callback([command, arguments] { run_cbt(*command, *arguments); });
  return command;
}

}  // namespace engram

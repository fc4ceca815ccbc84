#include "apps/commands/commands.hpp"

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "apps/commands/evaluate_arguments.hpp"
#include "apps/report/npy.hpp"
#include "apps/run/evaluation/evaluation_report.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

/// Of windows that read very much for each token that is scored.
void warn_of_reading(const SplitEvaluationOptions& options) {
  if (const std::int64_t reading = costly_reading(options); reading > 0)
    log(LogLevel::warning, text("--window ", options.window, " with --stride ", options.stride, " reads ", reading,
                                " tokens for each that is scored; a longer --stride reads fewer"));
}

void run_evaluate(const EvaluateArguments& arguments) {
  arguments.check();
  WorkProgress progress(text("reading '", arguments.model.run, "'"));
  OpenedModel opened(arguments.model, "evaluate",
                     [&](ModelOptions& model) { arguments.context().apply(model, "evaluate"); });
  TrainedModel& trained = opened.trained;
  const data::DataSet data = opened.open_data(arguments.data);
  const data::TokenView tokens = data.split(arguments.split);

  std::vector<double> losses;
  if (!arguments.per_token.empty())
    losses.assign(static_cast<std::size_t>(tokens.size()), std::numeric_limits<double>::quiet_NaN());
  PartialLoss without_ends = PartialLoss::without_ends(tokens, trained.vocabulary());
  PartialLoss without_marks = PartialLoss::without_certain_marks(tokens, data.doubled_mark());
  progress.begin("scored", "tokens");
  SplitEvaluationOptions options = arguments.way;
  options.watch = progress.watch();
  options.begins = [&options] { warn_of_reading(options); };
  const auto [result, rows] =
      evaluate_split(trained, {data, arguments.split}, options, {.found = [&](std::int64_t token, double nll) {
                       without_ends.add(token, nll);
                       without_marks.add(token, nll);
                       if (!losses.empty()) losses[static_cast<std::size_t>(token)] = nll;
                     }});
  progress.end();
  if (!losses.empty()) write_npy(arguments.per_token, losses, trained.dtype());

  const bool in_articles = trained.config().model.reads_articles(std::ssize(data.articles(arguments.split)));
  arguments.output.show(EvaluationReport{
      .checkpoint = trained.path().string(),
      .split = arguments.split,
      .way = options.apart        ? "windows"
             : options.window > 0 ? "sliding"
             : in_articles        ? "articles"
             : options.exact      ? "exact"
                                  : "paper",
      .step = trained.step(),
      .averaged_over = trained.averaged_over(),
      .tokens = tokens.size(),
      .rows = rows,
      .window = options.apart ? options.window : 0,
      .kind = trained.vocabulary().kind(),
      .result = result,
      .loss = {.all = result.nll(), .no_eol = without_ends.mean(), .no_certain_marks = without_marks.mean()},
      .cache = options.cache,
      .amount = data.text_amount(arguments.split),
      .mapped = trained.mapped_bytes()});
}

}  // namespace

Command* add_evaluate_command(Command& program) {
  Command* command = program.add_subcommand("evaluate", "measure a model on a split of prepared data");
  const auto arguments = std::make_shared<EvaluateArguments>();
  arguments->add_to(*command);
  command->callback([arguments] { run_evaluate(*arguments); });
  return command;
}

}  // namespace engram

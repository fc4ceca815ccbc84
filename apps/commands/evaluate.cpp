#include "apps/commands/commands.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "apps/commands/evaluate_arguments.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/report/npy.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/evaluation/evaluation_report.hpp"
#include "apps/run/folder/build_facts.hpp"
#include "apps/run/training/same_start.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/communicator.hpp"
#include "core/device.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

/// Of windows that read very much for each token that is scored.
void warn_of_reading(const SplitEvaluationOptions& options) {
  if (const std::int64_t reading = costly_reading(options); reading > 0)
    log(LogLevel::warning, text("--window ", options.window, " with --stride ", options.stride, " reads ", reading,
                                " tokens for each that is scored; a longer --stride reads fewer"));
}

/// Of a model that knows less of the text than who knows nothing.
void warn_of_guesses(const TrainedModel& trained, double nll) {
  const data::Vocabulary& vocabulary = trained.vocabulary();
  const double guess = std::log(static_cast<double>(vocabulary.size()));
  if (!(nll > guess)) return;
  log(LogLevel::warning,
      fmt::format("a guess among all {} {} would cost {:.6f} nats a token, less than the model's {:.6f}\n"
                  "  it has learned no such text, or its ids stand for other symbols: those of an imported model are "
                  "said by --vocab, and may go by count or by first appearance (engram prepare --ids)",
                  vocabulary.size(), data::plural_of(vocabulary.kind()), guess, nll));
}

/// The model and the data that it is measured on.
struct Opened {
  OpenedModel model;
  data::DataSet data;
  data::TokenView tokens;

  explicit Opened(const EvaluateArguments& arguments)
      : model(arguments.model, "evaluate",
              [&](ModelOptions& options) { arguments.context().apply(options, "evaluate"); }),
        data(model.open_data(arguments.data)),
        tokens(data.split(arguments.split)) {}
};

/// Ranks that would measure something else name what differs.
void require_same_evaluation(Communicator& ranks, const EvaluateArguments& arguments, Opened& opened) {
  if (ranks.alone()) return;
  TrainedModel& trained = opened.model.trained;
  std::error_code ignored;
  require_same_start(ranks, {.program = build_text(),
                             .config = to_toml(trained.config()),
                             .data = data::hash_text(opened.data.hash()),
                             .device = text(parse_device(arguments.model.device()).kind),
                             .dtype = text(trained.dtype()),
                             .checkpoint = text("step ", trained.step(), " in ",
                                                std::filesystem::file_size(trained.path(), ignored), " bytes")});
  require_same_instructions(ranks, trained.placed().runtime.backend());
  ranks.require_same("the way of evaluation", arguments.all_told());
}

/// For ranks that have nothing to do.
void warn_of_idle_ranks(const Communicator& ranks, std::int64_t parts) {
  if (ranks.size() <= parts) return;
  log(LogLevel::warning,
      parts == 1 ? text("the tokens are read as one, each after all before it: more ranks than 1 make that no faster")
                 : text("the tokens are read in ", parts, " parts: more ranks than that make it no faster"));
}

void run_evaluate(const EvaluateArguments& asked, Communicator& ranks) {
  EvaluateArguments arguments = asked;
  if (!ranks.alone()) arguments.model.divide_machine(ranks);
  WorkProgress progress(text("reading '", arguments.model.run, "'"));
  std::optional<Opened> opened;
  together(ranks, [&] {
    arguments.check();
    if (ranks.leads()) arguments.check_files();
    opened.emplace(arguments);
  });
  require_same_evaluation(ranks, arguments, *opened);
  TrainedModel& trained = opened->model.trained;
  const data::DataSet& data = opened->data;
  const data::TokenView tokens = opened->tokens;

  std::vector<double> losses;
  if (!arguments.per_token.empty())
    losses.assign(static_cast<std::size_t>(tokens.size()), std::numeric_limits<double>::quiet_NaN());
  PartialLoss without_ends = PartialLoss::without_ends(tokens, trained.vocabulary());
  PartialLoss without_marks = PartialLoss::without_certain_marks(tokens, data.doubled_mark());
  progress.begin("scored", "tokens");
  SplitEvaluationOptions options = arguments.way;
  options.watch = progress.watch();
  options.ranks = ranks.alone() ? nullptr : &ranks;
  options.begins = [&](std::int64_t parts) {
    warn_of_reading(options);
    warn_of_idle_ranks(ranks, parts);
  };
  const auto [result, rows] =
      evaluate_split(trained, {data, arguments.split}, options, {.found = [&](std::int64_t token, double nll) {
                       without_ends.add(token, nll);
                       without_marks.add(token, nll);
                       if (!losses.empty()) losses[static_cast<std::size_t>(token)] = nll;
                     }});
  progress.end();

  const bool in_articles = trained.config().model.reads_articles(std::ssize(data.articles(arguments.split)));
  const EvaluationReport report{
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
      .mapped = trained.mapped_bytes()};
  together(ranks, [&] {
    if (!ranks.leads()) return;
    if (!losses.empty()) write_npy(arguments.per_token, losses, trained.dtype());
    arguments.output.show(report);
    warn_of_guesses(trained, report.loss.all);
  });
}

}  // namespace

Command* add_evaluate_command(Command& program, Communicator* ranks) {
  Command* command = program.add_subcommand("evaluate", "measure a model on a split of prepared data");
  const auto arguments = std::make_shared<EvaluateArguments>();
  arguments->add_to(*command);
  command->footer("Several processes that mpirun starts share the work: docs/guide/several-processes.md.");
  command->callback([arguments, ranks] {
    OneRank alone;
    run_evaluate(*arguments, ranks != nullptr ? *ranks : alone);
  });
  return command;
}

}  // namespace engram

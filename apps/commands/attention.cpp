#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/commands/attention_arguments.hpp"
#include "apps/commands/commands.hpp"
#include "apps/studies/attention/attention_report.hpp"
#include "apps/studies/attention/distance_report.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

/// The part of the scores that a letter stands for; none for an empty text. CLI11 has checked the others.
std::optional<ScoreTerm> term_of(const std::string& letter) {
  if (letter == "a") return ScoreTerm::content;
  if (letter == "b") return ScoreTerm::position;
  if (letter == "c") return ScoreTerm::content_bias;
  if (letter == "d") return ScoreTerm::position_bias;
  return std::nullopt;
}

void show(const AllAttentionOptions&, OpenedModel& opened, const AttentionArguments& arguments,
          WorkProgress& progress) {
  TrainedModel& trained = opened.trained;
  AttentionStudy study(trained.placed_as<AllAttentionModel>(), arguments.studied);
  const std::vector<std::int32_t> tokens = arguments.read.tokens(opened);
  study.read(tokens, trained.config().training.block, progress.watch());
  progress.end();
  arguments.output.show(AttentionReport{.heads = study.heads(),
                                        .studied = arguments.studied,
                                        .rows = {study.rows().begin(), study.rows().end()},
                                        .slots = study.slots(static_cast<std::size_t>(arguments.slots)),
                                        .tokens = ReadTokens(tokens, trained.vocabulary())});
}

/// `report`: what is known of it before anything is read.
void show_distances(DistanceStudy study, DistanceReport report, OpenedModel& opened,
                    const AttentionArguments& arguments, WorkProgress& progress) {
  study.read(arguments.read.tokens(opened), opened.trained.config().training.block, progress.watch());
  progress.end();
  report.heads = study.heads();
  report.queries = study.queries();
  arguments.output.show(report);
}

void show(const TransformerXlOptions&, OpenedModel& opened, const AttentionArguments& arguments,
          WorkProgress& progress) {
  DistanceStudy study(opened.trained.placed_as<TransformerXlModel>(), term_of(arguments.term));
  show_distances(std::move(study), {.heads = {}, .term = arguments.term}, opened, arguments, progress);
}

void show(const ProductKeyTransformerOptions&, OpenedModel& opened, const AttentionArguments& arguments,
          WorkProgress& progress) {
  DistanceStudy study(opened.trained.placed_as<ProductKeyTransformer>());
  show_distances(std::move(study), {.heads = {}, .window = opened.trained.config().training.block}, opened, arguments,
                 progress);
}

void show(const RecurrentOptions&, OpenedModel& opened, const AttentionArguments& arguments, WorkProgress& progress) {
  const WindowReading reading = arguments.reading();
  const auto read = [&](const auto&... what) { return read_windows(opened.trained, what..., progress.watch()); };
  const WindowReport report = reading.data.empty() ? read(arguments.read.tokens(opened), reading.rows)
                                                   : read(opened.open_data(reading.data), reading);
  progress.end();
  arguments.output.write(report);
  if (!arguments.mean_csv.empty()) write_durably(arguments.mean_csv, csv_of(report.means));
  if (!arguments.mean_svg.empty())
    write_durably(arguments.mean_svg,
                  svg_of(report.means, text(name_of(report.readout), ", window of ", report.means.window(),
                                            ": mean of ", report.means.positions(), " positions")));
  arguments.output.say(report);
}

void run_attention(const AttentionArguments& arguments) {
  arguments.check_files();
  WorkProgress progress(text("reading '", arguments.model.run, "'"));
  OpenedModel opened(arguments.model, "attention", [&](ModelOptions& model) { arguments.prepare(model); });
  progress.begin("read", "tokens");
  with_own_options(opened.trained.config().model, [&](const auto& own) { show(own, opened, arguments, progress); });
}

}  // namespace

Command* add_attention_command(Command& program) {
  Command* command = program.add_subcommand("attention", "show where a trained model looks while it reads a text");
  const auto arguments = std::make_shared<AttentionArguments>();
  arguments->add_to(*command);
  command->callback([arguments] { run_attention(*arguments); });
  return command;
}

}  // namespace engram

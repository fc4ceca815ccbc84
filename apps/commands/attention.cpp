#include <memory>
#include <optional>
#include <string>
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
          const std::vector<std::int32_t>& tokens, WorkProgress& progress) {
  TrainedModel& trained = opened.trained;
  AttentionStudy study(trained.placed_as<AllAttentionModel>(), arguments.studied);
  study.read(tokens, trained.config().training.block, progress.watch());
  progress.end();
  arguments.output.show(AttentionReport{.heads = study.heads(),
                                        .studied = arguments.studied,
                                        .rows = {study.rows().begin(), study.rows().end()},
                                        .slots = study.slots(static_cast<std::size_t>(arguments.slots)),
                                        .tokens = ReadTokens(tokens, trained.vocabulary())});
}

void show(const TransformerXlOptions&, OpenedModel& opened, const AttentionArguments& arguments,
          std::vector<std::int32_t> tokens, WorkProgress& progress) {
  TrainedModel& trained = opened.trained;
  if (!arguments.data.empty()) {
    const WindowReading reading = arguments.reading();
    const data::DataSet data = opened.open_data(reading.data);
    const data::TokenView split = data.split(reading.split).beginning(reading.tokens);
    tokens.resize(static_cast<std::size_t>(split.size()));
    split.copy(0, split.size(), tokens.data());
  }
  DistanceStudy study(trained.placed_as<TransformerXlModel>(), term_of(arguments.term));
  study.read(tokens, trained.config().training.block, progress.watch());
  progress.end();
  arguments.output.show(DistanceReport{.heads = study.heads(), .queries = study.queries(), .term = arguments.term});
}

void show(const RecurrentOptions&, OpenedModel& opened, const AttentionArguments& arguments,
          const std::vector<std::int32_t>& tokens, WorkProgress& progress) {
  const WindowReading reading = arguments.reading();
  const auto read = [&](const auto&... what) { return read_windows(opened.trained, what..., progress.watch()); };
  const WindowReport report =
      reading.data.empty() ? read(tokens, reading.rows) : read(opened.open_data(reading.data), reading);
  progress.end();
  arguments.output.write(report);
  if (!arguments.mean_csv.empty()) write_durably(arguments.mean_csv, csv_of(report.means));
  if (!arguments.mean_svg.empty())
    write_durably(arguments.mean_svg,
                  svg_of(report.means, text(name_of(report.readout), ", window of ", report.means.window(),
                                            ": mean of ", report.means.positions(), " positions")));
  arguments.output.say(report);
}

void show(const ProductKeyTransformerOptions&, OpenedModel&, const AttentionArguments&,
          const std::vector<std::int32_t>&, WorkProgress&) {
  throw Error("attention: arguments.prepare() must refuse models of the family product_key");
}

void run_attention(const AttentionArguments& arguments) {
  arguments.check_files();
  WorkProgress progress(text("reading '", arguments.model.run, "'"));
  OpenedModel opened(arguments.model, "attention", [&](ModelOptions& model) { arguments.prepare(model); });
  const std::vector<std::int32_t> tokens = arguments.text_tokens(opened.trained);
  progress.begin("read", "tokens");
  with_own_options(opened.trained.config().model,
                   [&](const auto& own) { show(own, opened, arguments, tokens, progress); });
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

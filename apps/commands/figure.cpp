#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/commands/commands.hpp"
#include "apps/commands/figure_arguments.hpp"
#include "apps/studies/attention/window_reading.hpp"
#include "apps/studies/figures/head_figure.hpp"
#include "apps/studies/figures/offset_figure.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

/// Read by heads unless --tokens says otherwise: the last queries are shown, and none looks back farther than this.
constexpr std::int64_t kTokensOfMaps = 1024;

/// Refuses models without weights to show, before anything is read.
void require_weights(ModelOptions& options) {
  if (options.family == ModelFamily::recurrent) WindowStudy::check(options.recurrent);
}

void show_heads(const FigureArguments& arguments) {
  const std::vector<HeadPlace> heads = parse_heads(arguments.heads);
  const FigureStyle style = arguments.style();
  ModelArguments model = arguments.model;
  model.run = arguments.runs.front();
  WorkProgress progress(text("reading '", model.run, "'"));
  OpenedModel opened(model, "figure", require_weights);
  ReadingArguments read = arguments.read;
  if (read.most == 0) read.most = kTokensOfMaps;
  const std::vector<std::int32_t> tokens = read.tokens(opened);
  progress.begin("read", "tokens");
  HeadFigure figure = head_figure(opened.trained, tokens, heads, arguments.rows, progress.watch());
  progress.end();
  figure.style = style;
  arguments.output.show(figure);
}

ModelOffsets offsets_of_run(const FigureArguments& arguments, const std::string& run, const std::string& name,
                            WorkProgress& progress) {
  ModelArguments model = arguments.model;
  model.run = run;
  progress.begin(text("reading '", run, "'"));
  OpenedModel opened(model, "figure", require_weights);
  const ReadingArguments& read = arguments.read;
  progress.begin(text("'", name, "' read"), "tokens");
  if (opened.trained.config().model.family != ModelFamily::recurrent)
    return mean_offsets(name, opened.trained, read.tokens(opened), progress.watch());
  if (read.data.empty())
    return offsets_of(name, read_windows(opened.trained, read.tokens(opened), 1, progress.watch()).means);
  const WindowReading reading{.data = read.data, .split = read.split, .tokens = read.most, .rows = 1, .article = {}};
  return offsets_of(name, read_windows(opened.trained, opened.open_data(read.data), reading, progress.watch()).means);
}

Figure offsets_figure(const FigureArguments& arguments) {
  const std::vector<std::filesystem::path> paths(arguments.runs.begin(), arguments.runs.end());
  std::vector<std::string> names = arguments.names();
  if (names.empty()) names = short_names(paths);
  if (names.size() != paths.size())
    throw UsageError(text("figure: --name must name each of the ", paths.size(), " runs, got ", names.size()));
  WorkProgress progress("reading runs");
  std::vector<ModelOffsets> models;
  for (std::size_t i = 0; i < paths.size(); ++i)
    models.push_back(offsets_of_run(arguments, arguments.runs[i], names[i], progress));
  progress.end();
  return offset_figure(models);
}

void run_figure(const FigureArguments& arguments) {
  const FigureKind kind = arguments.kind();
  const FigureStyle style = arguments.style();
  switch (kind) {
    case FigureKind::curves:
      return arguments.output.show(styled(curve_figure(arguments.curves()), style));
    case FigureKind::sweep:
      return arguments.output.show(styled(sweep_figure(SweepFolder(arguments.runs.front()), arguments.sweep()), style));
    case FigureKind::heads:
      return show_heads(arguments);
    case FigureKind::offsets:
      return arguments.output.show(styled(offsets_figure(arguments), style));
  }
}

}  // namespace

Command* add_figure_command(Command& program) {
  Command* command = program.add_subcommand("figure", "draw runs for a paper: curves, sweeps, heads, offsets");
  const auto arguments = std::make_shared<FigureArguments>();
  arguments->add_to(*command);
  command->footer(
      "curves: training curves of several runs in one plot; runs of a sweep that differ in their seeds are one line. "
      "sweep: what a sweep measured against a key, by variant as bars, or against another figure. heads: maps of "
      "several "
      "heads side by side. offsets: the mean weight by offset of several models. What is drawn is printed too, with "
      "what "
      "is left out and why.");
  command->callback([arguments] { run_figure(*arguments); });
  return command;
}

}  // namespace engram

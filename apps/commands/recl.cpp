#include "apps/commands/commands.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include "apps/command_line/number_list.hpp"
#include "apps/commands/study_arguments.hpp"
#include "apps/studies/context/group_losses.hpp"
#include "apps/studies/context/relative_report.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct ReclArguments {
  StudyArguments study;
  std::string ratios = "0.1,0.5,1", method = "exact";
  std::int64_t first = 100, step = 100, longest = 1000, positions = 500;
  std::uint64_t seed = 1;
  double threshold = 0.01;
};

void run_recl(const ReclArguments& arguments) {
  const ContextMethod method = parse_named<ContextMethod>("recl: --method", arguments.method);
  arguments.study.output.check("recl", {"run,share,"});
  RelativeReport report{.data = arguments.study.data,
                        .split = arguments.study.split,
                        .method = method,
                        .seed = arguments.seed,
                        .threshold = arguments.threshold,
                        .shares = parse_shares(arguments.ratios, "recl: --ratios"),
                        .runs = {},
                        .table = {}};
  if (arguments.longest < arguments.first + arguments.step)
    throw UsageError(text("recl: --longest must be at least --first + --step, ", arguments.first + arguments.step,
                          ", got ", arguments.longest));
  if (!std::isfinite(arguments.threshold))
    throw UsageError(text("recl: --threshold must be a number, got ", arguments.threshold));
  WorkProgress progress("reading the data and the runs");
  Study study(arguments.study, "recl");
  report.runs = study.runs;
  check_group(report.runs, method);
  // Before a list is made of it.
  if (arguments.longest >= study.tokens.size())
    throw UsageError(
        text("recl: --longest must be below the number of tokens, ", study.tokens.size(), ", got ", arguments.longest));
  report.table.lengths = lengths_up_to(arguments.first, arguments.step, arguments.longest);
  const std::optional<std::int64_t> clamp = arguments.study.clamp();
  if (clamp && std::ranges::none_of(report.runs, &StudiedRun::is_transformer_xl))
    throw UsageError("recl: --clamp-len is for runs of family transformer_xl, got none of them");
  const std::vector<std::int64_t> positions =
      draw_positions(study.tokens, arguments.positions, report.table.lengths.back(), arguments.seed);
  for (const StudiedRun& one : report.runs) {
    PositionReader reader(one, study.tokens, positions, clamp, study.runtime, study.dtype);
    reader.watch(progress.watch());
    const std::string what = text("run ", report.table.losses.size() + 1, "/", report.runs.size());
    report.table.losses.push_back(losses_of(one, report.table.lengths, method, reader, [&](std::int64_t length) {
      progress.begin(text(what, ", context ", length, ":"), "positions");
    }));
  }
  progress.end();
  arguments.study.output.show(report);
}

}  // namespace

Command* add_recl_command(Command& program) {
  Command* command = program.add_subcommand("recl", "measure how many tokens of context the runs of a group use");
  const auto arguments = std::make_shared<ReclArguments>();
  arguments->study.add_reading(*command, "folders of the group's runs, or checkpoints: two or more");
  command->add_option("--first", arguments->first, "tokens of the shortest context")->positive()->capture_default_str();
  command->add_option("--step", arguments->step, "tokens that the next context has more")
      ->positive()
      ->capture_default_str();
  command->add_option("--longest", arguments->longest, "up to this context")->positive()->capture_default_str();
  command->add_option("--ratios", arguments->ratios, "r: shares of the positions, those hardest to the best model")
      ->capture_default_str();
  command
      ->add_option("--threshold", arguments->threshold,
                   "a longer context must lower the perplexity by this share to count")
      ->within(0, 1)
      ->capture_default_str();
  command
      ->add_option("--method", arguments->method,
                   "exact: every position's context is read from an empty memory; windowed: one pass over the split "
                   "for each length with a sliding window, through which layers leak what is farther back")
      ->suggest({"exact", "windowed"})
      ->capture_default_str();
  command->add_option("--positions", arguments->positions, "positions of the split, drawn at random")
      ->positive()
      ->capture_default_str();
  command->add_option("--seed", arguments->seed, "of the drawing")->capture_default_str();
  arguments->study.add_running(*command, "write the gain of every run, share and step to this file");
  command->callback([arguments] { run_recl(*arguments); });
  return command;
}

}  // namespace engram

#include "apps/commands/commands.hpp"

#include <memory>
#include <string>
#include <vector>

#include "apps/command_line/number_list.hpp"
#include "apps/commands/study_arguments.hpp"
#include "apps/studies/context/length_report.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

struct LengthsArguments {
  StudyArguments study;
  LengthSweepOptions options;  ///< without lengths and clamp
  std::string lengths;
  std::int64_t step = 20, longest = 1000;
  double tolerance = 0;
};

void run_lengths(const Command& command, const LengthsArguments& arguments) {
  arguments.study.output.check("lengths", {"run,reads,"});
  LengthSweepOptions options = arguments.options;
  options.clamp = arguments.study.clamp();
  const bool listed = command.count("--lengths") > 0;
  if (listed && command.count("--step") + command.count("--longest") > 0)
    throw UsageError("lengths: --lengths lists all lengths, got --step or --longest too");
  if (listed) options.lengths = parse_lengths(arguments.lengths, "lengths: --lengths");
  WorkProgress progress("reading the data and the runs");
  Study study(arguments.study, "lengths");
  // Before a list is made of it.
  if (!listed && arguments.longest >= study.tokens.size())
    throw UsageError(text("lengths: every length must be below the number of tokens, ", study.tokens.size(), ", got ",
                          arguments.longest, "\n  take more tokens, or a lower --longest"));
  if (!listed) options.lengths = lengths_up_to(arguments.step, arguments.step, arguments.longest);
  options.watch = progress.watch();
  check_length_sweep(study.runs, options, study.tokens);

  const data::TokenKind kind = study.data.kind();
  LengthReport report{.data = arguments.study.data,
                      .split = arguments.study.split,
                      .tokens = study.tokens.size(),
                      .kind = kind,
                      .tolerance = command.count("--tolerance") > 0 ? arguments.tolerance : usual_tolerance(kind),
                      .options = options,
                      .curves = {}};
  for (const StudiedRun& one : study.runs) {
    const std::string scored = text("run ", report.curves.size() + 1, "/", study.runs.size(), ", scored");
    progress.begin(scored, "tokens");
    report.curves.push_back(
        sweep_lengths(one, study.tokens, options, study.runtime, study.dtype, [&](const LengthPoint& point) {
          log(LogLevel::info, "lengths: " + line_of(one, point, kind));
          progress.begin(scored, "tokens");
        }));
  }
  progress.end();
  arguments.study.output.show(report);
}

}  // namespace

Command* add_lengths_command(Command& program) {
  Command* command = program.add_subcommand("lengths", "measure transformer_xl runs at other attention lengths");
  const auto arguments = std::make_shared<LengthsArguments>();
  arguments->study.add_reading(*command, "folders of runs, or checkpoints");
  command->add_option("--lengths", arguments->lengths,
                      "32,64,96: positions that layers remember, or, without memory, of the windows that are read; "
                      "the training length is always measured too");
  command->add_option("--step", arguments->step, "without --lengths: from this length on, in steps of it")
      ->positive()
      ->capture_default_str();
  command->add_option("--longest", arguments->longest, "up to this one")->positive()->capture_default_str();
  command
      ->add_option("--stride", arguments->options.stride,
                   "without memory: new tokens of each window, at most its length [a quarter of it]")
      ->positive();
  command->add_flag("--same-length", arguments->options.same_length,
                    "with memory: every query sees as many positions as the length says, itself among them");
  command->add_flag("--exact", arguments->options.exact,
                    "with memory: score every token but the first, as without memory; otherwise ten streams");
  command
      ->add_option("--tolerance", arguments->tolerance,
                   "a length is long enough whose score is at most so much above the best [0.001 bits of characters, "
                   "0.01 of the perplexity of words]")
      ->non_negative();
  command->add_option("--svg", arguments->study.output.svg, "draw a line for each run");
  arguments->study.add_running(*command, "write every run and length to this file");
  command->callback([command, arguments] { run_lengths(*command, *arguments); });
  return command;
}

}  // namespace engram

#include "apps/commands/commands.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/command_line/number_list.hpp"
#include "apps/commands/output.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/commands/study_arguments.hpp"
#include "apps/run/evaluation/score.hpp"
#include "apps/studies/context/length_report.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

struct LengthsArguments {
  StudyArguments study;
  std::string lengths, svg;
  std::int64_t step = 20, longest = 1000, stride = 0;
  double tolerance = 0;
  bool same_length = false, exact = false;
};

/// The lengths of --lengths; none where a list up to --longest is to be made.
std::vector<std::int64_t> listed_lengths(const Command& command, const LengthsArguments& arguments) {
  if (command.count("--lengths") == 0) return {};
  if (command.count("--step") + command.count("--longest") > 0)
    throw UsageError("lengths: --lengths lists all lengths, got --step or --longest too");
  return parse_lengths(arguments.lengths, "lengths: --lengths");
}

LengthSweepOptions options_of(const LengthsArguments& arguments, std::vector<std::int64_t> listed) {
  LengthSweepOptions options;
  options.lengths =
      listed.empty() ? lengths_up_to(arguments.step, arguments.step, arguments.longest) : std::move(listed);
  options.stride = arguments.stride;
  options.clamp = arguments.study.clamp();
  options.same_length = arguments.same_length;
  options.exact = arguments.exact;
  return options;
}

std::string progress_of(const LengthCurve& curve, const LengthPoint& point, data::TokenKind kind) {
  if (!point.nll) return fmt::format("lengths: {}, length {}: {}", curve.run.name, point.length, point.note);
  return fmt::format("lengths: {}, length {}: {} {:.4f} in {:.1f} s", curve.run.name, point.length, score_name(kind),
                     score_of(kind, *point.nll), point.seconds);
}

void run_lengths(const Command& command, const LengthsArguments& arguments) {
  check_output_file("lengths: --csv", arguments.study.csv, {"run,reads,"});
  check_output_file("lengths: --svg", arguments.svg, {kSvgBeginning});
  std::vector<std::int64_t> listed = listed_lengths(command, arguments);
  WorkProgress progress("reading the data and the runs");
  Study study(arguments.study, "lengths");
  // Before a list is made of it.
  if (listed.empty() && arguments.longest >= study.tokens.size())
    throw UsageError(text("lengths: every length must be below the number of tokens, ", study.tokens.size(), ", got ",
                          arguments.longest, "\n  take more tokens, or a lower --longest"));
  LengthSweepOptions options = options_of(arguments, std::move(listed));
  options.watch = progress.watch();
  check_length_sweep(study.runs, options, study.tokens);

  constexpr double kBits = 0.001, kPerplexity = 0.01;
  LengthReport report{.data = arguments.study.data,
                      .split = arguments.study.split,
                      .tokens = study.tokens.size(),
                      .kind = study.data.kind(),
                      .tolerance = command.count("--tolerance") > 0                  ? arguments.tolerance
                                   : study.data.kind() == data::TokenKind::character ? kBits
                                                                                     : kPerplexity,
                      .options = options,
                      .curves = {}};
  for (const StudiedRun& one : study.runs) {
    const LengthCurve named{.run = one, .points = {}};
    const std::string scored = text("run ", report.curves.size() + 1, "/", study.runs.size(), ", scored");
    progress.begin(scored, "tokens");
    report.curves.push_back(
        sweep_lengths(one, study.tokens, options, study.runtime, study.dtype, [&](const LengthPoint& point) {
          log(LogLevel::info, progress_of(named, point, report.kind));
          progress.begin(scored, "tokens");
        }));
  }
  progress.end();
  if (!arguments.study.csv.empty()) write_durably(arguments.study.csv, length_csv(report));
  if (!arguments.svg.empty()) write_durably(arguments.svg, draw_lengths(report));
  if (arguments.study.json) return print_json(length_json(report));
  print(length_table(report));
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
      ->add_option("--stride", arguments->stride,
                   "without memory: new tokens of each window, at most its length [a quarter of it]")
      ->positive();
  command->add_flag("--same-length", arguments->same_length,
                    "with memory: every query sees as many positions as the length says, itself among them");
  command->add_flag("--exact", arguments->exact,
                    "with memory: score every token but the first, as without memory; otherwise ten streams");
  command
      ->add_option("--tolerance", arguments->tolerance,
                   "a length is long enough whose score is at most so much above the best [0.001 bits of characters, "
                   "0.01 of the perplexity of words]")
      ->non_negative();
  command->add_option("--svg", arguments->svg, "draw a line for each run");
  arguments->study.add_running(*command, "write every run and length to this file");
  command->callback([command, arguments] { run_lengths(*command, *arguments); });
  return command;
}

}  // namespace engram

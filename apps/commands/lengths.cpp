#include "apps/commands/lengths.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/commands/output.hpp"
#include "apps/context/length_report.hpp"
#include "apps/context/number_list.hpp"
#include "apps/training/score.hpp"
#include "core/durable_file.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

struct Arguments {
  std::vector<std::string> runs;
  std::string data, lengths, csv, svg;
  std::string split = "valid", device = "cpu", dtype = "f32";
  std::int64_t step = 20, longest = 1000, stride = 0, clamp = 0, tokens = 0;
  double tolerance = 0;
  int threads = 0;
  bool same_length = false, exact = false, best = false, json = false;
};

LengthSweepOptions options_of(const CLI::App& command, const Arguments& arguments) {
  const bool listed = command.count("--lengths") > 0;
  if (listed && command.count("--step") + command.count("--longest") > 0)
    throw UsageError("lengths: --lengths lists all lengths, got --step or --longest too");
  LengthSweepOptions options;
  options.lengths = listed ? parse_lengths(arguments.lengths, "lengths: --lengths")
                           : lengths_up_to(arguments.step, arguments.step, arguments.longest);
  options.stride = arguments.stride;
  if (command.count("--clamp-len") > 0) options.clamp = arguments.clamp;
  options.same_length = arguments.same_length;
  options.exact = arguments.exact;
  return options;
}

std::string progress_of(const LengthCurve& curve, const LengthPoint& point, data::TokenKind kind) {
  if (!point.nll) return fmt::format("lengths: {}, length {}: {}", curve.run.name, point.length, point.note);
  return fmt::format("lengths: {}, length {}: {} {:.4f} in {:.1f} s", curve.run.name, point.length, score_name(kind),
                     score_of(kind, *point.nll), point.seconds);
}

void run(const CLI::App& command, const Arguments& arguments) {
  const LengthSweepOptions options = options_of(command, arguments);
  const DType dtype = parse_dtype(arguments.dtype);
  if (dtype != DType::f32 && dtype != DType::f64)
    throw UsageError(text("lengths: --dtype must be f32 or f64, got ", dtype));
  Runtime runtime(parse_device(arguments.device), arguments.threads);
  const data::DataSet data = data::DataSet::open(arguments.data);
  const data::TokenView tokens = first_tokens(data.split(arguments.split), arguments.tokens);
  const std::vector<StudiedRun> runs = open_studied_runs(
      arguments.runs, arguments.best ? CheckpointKind::best : CheckpointKind::newest, data, "lengths");
  check_length_sweep(runs, options, tokens);

  constexpr double kBits = 0.001, kPerplexity = 0.01;
  LengthReport report{.data = arguments.data,
                      .split = arguments.split,
                      .tokens = tokens.size(),
                      .kind = data.kind(),
                      .tolerance = command.count("--tolerance") > 0       ? arguments.tolerance
                                   : data.kind() == data::TokenKind::word ? kPerplexity
                                                                          : kBits,
                      .options = options,
                      .curves = {}};
  for (const StudiedRun& one : runs) {
    const LengthCurve named{.run = one, .points = {}};
    report.curves.push_back(sweep_lengths(one, tokens, options, runtime, dtype, [&](const LengthPoint& point) {
      log(LogLevel::info, progress_of(named, point, report.kind));
    }));
  }
  if (!arguments.csv.empty()) write_durably(arguments.csv, length_csv(report));
  if (!arguments.svg.empty()) write_durably(arguments.svg, draw_lengths(report));
  if (arguments.json) return print_json(length_json(report));
  print(length_table(report));
}

}  // namespace

CLI::App* add_lengths_command(CLI::App& program) {
  CLI::App* command =
      program.add_subcommand("lengths", "measure transformer_xl runs at other attention lengths than in training");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("runs", arguments->runs, "folders of runs, or checkpoints")->required();
  command->add_option("--data", arguments->data, "data folder that engram prepare wrote")->required();
  command->add_option("--split", arguments->split, "train, valid or test")->capture_default_str();
  command->add_option("--lengths", arguments->lengths,
                      "32,64,96: positions that layers remember, or, without memory, of the windows that are read; "
                      "the training length is always measured too");
  command->add_option("--step", arguments->step, "without --lengths: from this length on, in steps of it")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--longest", arguments->longest, "up to this one")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      ->add_option("--stride", arguments->stride,
                   "without memory: new tokens of each window, at most its length [a quarter of it]")
      ->check(CLI::PositiveNumber);
  command->add_option("--clamp-len", arguments->clamp, "distances above it count as it; 0: none [the run's]")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--same-length", arguments->same_length,
                    "with memory: every query sees as many positions as the length says, itself among them");
  command->add_flag("--exact", arguments->exact,
                    "with memory: score every token but the first, as without memory; otherwise ten streams");
  command->add_option("--tokens", arguments->tokens, "only so many tokens from the start of the split [all]")
      ->check(CLI::PositiveNumber);
  command
      ->add_option("--tolerance", arguments->tolerance,
                   "a length is long enough whose score is at most so much above the best [0.001 bits of characters, "
                   "0.01 of the perplexity of words]")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--csv", arguments->csv, "write every run and length to this file");
  command->add_option("--svg", arguments->svg, "draw a line for each run");
  command->add_flag("--best", arguments->best, "the runs' best checkpoints instead of the newest");
  command->add_option("--device", arguments->device, "cpu, cuda, cuda:1 or simulated")->capture_default_str();
  command->add_option("--dtype", arguments->dtype, "f32 or f64")->capture_default_str();
  command->add_option("--threads", arguments->threads, "threads of the host [all]")->check(CLI::PositiveNumber);
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([command, arguments] { run(*command, *arguments); });
  return command;
}

}  // namespace engram

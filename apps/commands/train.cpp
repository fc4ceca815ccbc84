#include "apps/commands/commands.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/commands/shared_options.hpp"
#include "apps/run/model/rank_share.hpp"
#include "apps/run/training/training_run.hpp"
#include "apps/terminal/signals.hpp"
#include "core/communicator.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "nn/option_limits.hpp"

namespace engram {
namespace {

struct TrainArguments {
  TrainingRunOptions run;
  std::string config, data, out, from;
  std::vector<std::string> freeze;
  std::string device = "cpu";
  std::string dtype;
  std::int64_t steps = 0, split = 1;
  std::uint64_t seed = 0;
};

/// Which part of the machine each of several ranks gets, which is said.
void divide_machine(Communicator& ranks, const std::string& device, TrainingRunOptions& options) {
  const RankShare share = share_of(ranks);
  options.device = device_of_rank(device, share);
  options.threads = threads_of_rank(ranks, share, options.threads);
  options.ranks_here = share.local_ranks;
  log(LogLevel::info, share_text(share, ranks.size(), options.threads, cores_of_host()));
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ",") + name;
  return all;
}

void run_train(const Command& command, const TrainArguments& arguments, Communicator& ranks) {
  TrainingRunOptions options = arguments.run;
  options.ranks = &ranks;
  options.config = arguments.config;
  options.data = arguments.data;
  options.out = arguments.out;
  options.from = arguments.from;
  options.device = parse_device(arguments.device);
  if (!arguments.dtype.empty()) {
    const DType dtype = dtype_option("training", arguments.dtype, true);
    options.dtype = dtype == DType::bf16 ? DType::f32 : dtype;
    options.overrides.push_back(text("training.products=", dtype == DType::bf16 ? "bf16" : "f32"));
  }
  if (command.count("--steps") > 0) options.steps = arguments.steps;
  if (command.count("--seed") > 0) options.overrides.push_back("training.seed=" + std::to_string(arguments.seed));
  if (command.count("--freeze") > 0) options.overrides.push_back("training.freeze=" + joined(arguments.freeze));
  if (command.count("--split") > 0) options.overrides.push_back(text("training.split=", arguments.split));
  if (!ranks.alone()) divide_machine(ranks, arguments.device, options);
  run_until_stopped(ranks.alone(), [&](const std::function<bool()>& stop) { run_training(options, stop); });
}

}  // namespace

Command* add_train_command(Command& program, Communicator* ranks) {
  Command* command = program.add_subcommand("train", "train a model on prepared data");
  const auto arguments = std::make_shared<TrainArguments>();
  command->add_option(
      "--config", arguments->config,
      "TOML file that defines the run, or a name of engram configs; --resume and --from can do without");
  command->add_key_settings(arguments->run.overrides, "override keys of the config: section.key=value");
  command->add_option("--data", arguments->data, "data folder that engram prepare wrote")->required();
  command
      ->add_option("--from", arguments->from,
                   "begin with the weights of this run or checkpoint, as far as they fit; without --config its "
                   "configuration is the start (docs/guide/fine-tuning.md)")
      ->value_name("RUN");
  command
      ->add_option("--freeze", arguments->freeze,
                   "override training.freeze: leave parameters with such names as they are, * being anything: "
                   "'layers.0.*'; may be given several times")
      ->value_name("PATTERN")
      ->allow_extra_args(false);
  command->add_option("--out", arguments->out, "folder of the run: config, metrics, checkpoints")->required();
  command
      ->add_option("--steps", arguments->steps,
                   "override schedule.steps; if they are fewer than schedule.warmup, that is a tenth of them")
      ->within(1, static_cast<double>(option_limits::kSteps));
  command->add_option("--seed", arguments->seed, "override training.seed");
  command
      ->add_option(
          "--split", arguments->split,
          "override training.split; of several ranks (docs/guide/several-processes.md) each has as many of these "
          "pieces, a power of two, and it is raised to that")
      ->within(1, 65535);
  add_device_option(*command, arguments->device);
  command->add_option("--dtype", arguments->dtype, "f32, bf16 (operands of products) or f64 [that of config or run]")
      ->suggest({"f32", "bf16", "f64"});
  add_threads_option(*command, arguments->run.threads);
  command->add_flag("--resume", arguments->run.resume, "continue the run in --out from its checkpoint");
  command->add_flag("--resize-span", arguments->run.resize_span,
                    "with --resume: model.max_span may be another than the run's");
  command->add_flag("--list-tape", arguments->run.list_tape, "print the operations of the first step");
  command->add_flag("--trace-nan", arguments->run.trace_nan, "stop at the first number that is not finite (slow)");
  command->footer("engram keys lists the keys of a configuration, those of [model] for each family of models.");
  command->callback([command, arguments, ranks] {
    OneRank alone;
    run_train(*command, *arguments, ranks != nullptr ? *ranks : alone);
  });
  return command;
}

}  // namespace engram

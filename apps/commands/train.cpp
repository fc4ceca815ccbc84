#include "apps/commands/train.hpp"

#include <cstdint>
#include <memory>
#include <string>

#include "apps/commands/dtype_option.hpp"
#include "apps/training/signals.hpp"
#include "apps/training/training_run.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct TrainArguments {
  TrainingRunOptions run;
  std::string config, data, out;
  std::string device = "cpu";
  std::string dtype;
  std::int64_t steps = -1;
  std::int64_t seed = -1;
};

void run_train(const Command& command, const TrainArguments& arguments) {
  TrainingRunOptions options = arguments.run;
  options.config = arguments.config;
  options.data = arguments.data;
  options.out = arguments.out;
  options.device = parse_device(arguments.device);
  if (!arguments.dtype.empty()) {
    const DType dtype = dtype_option("training", arguments.dtype, true);
    options.dtype = dtype == DType::bf16 ? DType::f32 : dtype;
    options.overrides.push_back(text("training.products=", dtype == DType::bf16 ? "bf16" : "f32"));
  }
  if (command.count("--steps") > 0) options.overrides.push_back("schedule.steps=" + std::to_string(arguments.steps));
  if (command.count("--seed") > 0) options.overrides.push_back("training.seed=" + std::to_string(arguments.seed));
  const StopSignals signals;
  run_training(options, [&signals] { return signals.received(); });
}

}  // namespace

Command* add_train_command(Command& program) {
  Command* command = program.add_subcommand("train", "train a model on prepared data");
  const auto arguments = std::make_shared<TrainArguments>();
  command->add_option("--config", arguments->config, "TOML file that defines the run; --resume can do without");
  command->add_option("--set", arguments->run.overrides, "override a key of the config: section.key=value");
  command->add_option("--data", arguments->data, "data folder that engram prepare wrote")->required();
  command->add_option("--out", arguments->out, "folder of the run: config, metrics, checkpoints")->required();
  command->add_option("--steps", arguments->steps, "override schedule.steps");
  command->add_option("--seed", arguments->seed, "override training.seed");
  command->add_option("--device", arguments->device, "cpu, cuda, cuda:1 or simulated")->capture_default_str();
  command->add_option("--dtype", arguments->dtype, "f32, bf16 (operands of products) or f64 [that of config or run]");
  command->add_option("--threads", arguments->run.threads, "threads of the host; 0: all")
      ->non_negative()
      ->capture_default_str();
  command->add_flag("--resume", arguments->run.resume, "continue the run in --out from its checkpoint");
  command->add_flag("--resize-span", arguments->run.resize_span,
                    "with --resume: model.max_span may be another than the run's");
  command->add_flag("--list-tape", arguments->run.list_tape, "print the operations of the first step");
  command->add_flag("--trace-nan", arguments->run.trace_nan, "stop at the first number that is not finite (slow)");
  command->footer("engram keys lists the keys of a configuration, those of [model] for each family of models.");
  command->callback([command, arguments] { run_train(*command, *arguments); });
  return command;
}

}  // namespace engram

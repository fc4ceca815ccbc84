#include "apps/commands/commands.hpp"

#include <memory>
#include <string>

#include "apps/commands/model_arguments.hpp"
#include "apps/commands/report_output.hpp"
#include "apps/run/evaluation/model_product_key_usage.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/studies/product_keys/product_key_report.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct MemoryArguments {
  ModelArguments model;
  ReportOutput output;
  std::string data, split = "test";
  std::int64_t tokens = 0;
};

void require_memories(const ModelOptions& model) {
  if (!model.memories().any())
    throw UsageError(text("memory: the model must have product-key memories, got one of family ", name_of(model.family),
                          " without\n  product_key.count or product_key.layers in a configuration gives it some"));
}

void run_memory(const MemoryArguments& arguments) {
  arguments.output.check("memory", {"memory,rank,"});
  WorkProgress progress(text("reading '", arguments.model.run, "'"));
  OpenedModel opened(arguments.model, "memory", require_memories);
  TrainedModel& trained = opened.trained;
  const data::DataSet data = opened.open_data(arguments.data);
  const ModelOptions& model = trained.config().model;
  ModelProductKeyUsage usage(model);
  progress.begin("scored", "tokens");
  SplitEvaluationOptions way;
  way.watch = progress.watch();
  evaluate_split(trained, data.split(arguments.split).beginning(arguments.tokens), way, {.reads = usage.reads()});
  progress.begin("measuring the rows of the tables");
  ProductKeyReport report{.checkpoint = trained.path().string(),
                          .data = arguments.data,
                          .split = arguments.split,
                          .step = trained.step(),
                          .heads = model.memories().heads,
                          .selected = model.memories().selected,
                          .rows = {}};
  report.add(usage, trained, opened.runtime.backend());
  progress.end();
  arguments.output.show(report);
}

}  // namespace

Command* add_memory_command(Command& program) {
  Command* command =
      program.add_subcommand("memory", "show how a trained model's product-key memories use their slots");
  const auto arguments = std::make_shared<MemoryArguments>();
  arguments->model.add_run(*command);
  command->add_option("--data", arguments->data, "data folder that engram prepare wrote")->required();
  command->add_option("--split", arguments->split, "train, valid or test")
      ->suggest({"train", "valid", "test"})
      ->capture_default_str();
  command->add_option("--tokens", arguments->tokens, "only so many tokens from the start of the split [all]")
      ->positive();
  command->add_option("--csv", arguments->output.csv,
                      "write rank and share of the slots that were read to this file, of many slots a part");
  command->add_option("--svg", arguments->output.svg, "draw the shares by rank, a line for each memory");
  arguments->model.add_options(*command, false);
  arguments->output.add_json(*command);
  command->callback([arguments] { run_memory(*arguments); });
  return command;
}

}  // namespace engram

#include "apps/commands/commands.hpp"

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/commands/model_arguments.hpp"
#include "apps/commands/output.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/run/evaluation/model_memory_usage.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/studies/context/studied_run.hpp"
#include "apps/studies/product_keys/memory_picture.hpp"
#include "apps/studies/product_keys/memory_report.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"
#include "core/files/mapped_table.hpp"

namespace engram {
namespace {

struct MemoryArguments {
  ModelArguments model;
  std::string data, csv, svg;
  std::string split = "test";
  std::int64_t tokens = 0;
  bool json = false;
};

void require_memories(const ModelOptions& model) {
  if (!model.memories().any())
    throw UsageError(text("memory: the model must have product-key memories, got one of family ", name_of(model.family),
                          " without\n  product_key.count or product_key.layers in a configuration gives it some"));
}

/// The parameter whose rows are the values of a layer's memory.
std::string table_name(const ParameterStore& store, std::int64_t layer) {
  std::string name = text("layers.", layer - 1, ".memory.values.rows");
  const auto shared = store.aliases().find(name);
  return shared == store.aliases().end() ? name : shared->second;
}

/// The values that a layer's memory reads.
PaddedTable table_of(const ParameterStore& store, std::int64_t layer) {
  const std::string name = table_name(store, layer);
  const Parameter* const table = store.find(name);
  if (table == nullptr) throw Error(text("memory: layer ", layer, " must have a table '", name, "', got none"));
  return {table->mapped() != nullptr ? table->mapped()->padded_rows() : table->value(), table->shape()[1]};
}

/// For how long training has left rows of the table alone, where it was told to remember.
std::optional<IdleRows> idle_rows_of(const CheckpointFile& file, const std::string& table, std::int64_t step) {
  const std::string name = text("optimizer/", table, ".last_use");
  if (!file.has(name)) return std::nullopt;
  const std::span<const std::byte> bytes = file.bytes(file.at(name));
  std::vector<std::int32_t> last_use(bytes.size() / sizeof(std::int32_t));
  std::memcpy(last_use.data(), bytes.data(), last_use.size() * sizeof(std::int32_t));
  return idle_rows(last_use, step);
}

void run_memory(const MemoryArguments& arguments) {
  check_output_file("memory: --csv", arguments.csv, {"memory,rank,"});
  check_output_file("memory: --svg", arguments.svg, {kSvgBeginning});
  WorkProgress progress(text("reading '", arguments.model.run, "'"));
  OpenedModel opened(arguments.model, "memory", require_memories);
  TrainedModel& trained = opened.trained;
  const data::DataSet data = opened.open_data(arguments.data);
  const ModelOptions& model = trained.config().model;
  ModelMemoryUsage usage(model);
  progress.begin("scored", "tokens");
  SplitEvaluationOptions way;
  way.watch = progress.watch();
  evaluate_split(trained, first_tokens(data.split(arguments.split), arguments.tokens), way, {.reads = usage.reads()});
  progress.begin("measuring the rows of the tables");
  MemoryReport report{.checkpoint = trained.path().string(),
                      .data = arguments.data,
                      .split = arguments.split,
                      .step = trained.step(),
                      .heads = model.memories().heads,
                      .selected = model.memories().selected,
                      .rows = {}};
  report.add(usage, opened.runtime.backend(),
             [&trained](std::int64_t layer) { return table_of(trained.store(), layer); });
  const CheckpointFile file(trained.path());
  for (MemoryReport::Row& row : report.rows) {
    const std::int64_t layer = row.layer > 0 ? row.layer : report.rows.front().layer;
    row.idle = idle_rows_of(file, table_name(trained.store(), layer), trained.step());
  }
  progress.end();
  if (!arguments.csv.empty()) write_durably(arguments.csv, memory_csv(report));
  if (!arguments.svg.empty()) write_durably(arguments.svg, draw_memories(report));
  if (arguments.json) return print_json(memory_json(report));
  print(memory_table(report));
}

}  // namespace

Command* add_memory_command(Command& program) {
  Command* command =
      program.add_subcommand("memory", "show how a trained model's product-key memories use their slots");
  const auto arguments = std::make_shared<MemoryArguments>();
  arguments->model.add_run(*command);
  command->add_option("--data", arguments->data, "data folder that engram prepare wrote")->required();
  command->add_option("--split", arguments->split, "train, valid or test")->capture_default_str();
  command->add_option("--tokens", arguments->tokens, "only so many tokens from the start of the split [all]")
      ->positive();
  command->add_option("--csv", arguments->csv,
                      "write rank and share of the slots that were read to this file, of many slots a part");
  command->add_option("--svg", arguments->svg, "draw the shares by rank, a line for each memory");
  arguments->model.add_options(*command, false);
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments] { run_memory(*arguments); });
  return command;
}

}  // namespace engram

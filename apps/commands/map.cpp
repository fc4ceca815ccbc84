#include "apps/commands/commands.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/commands/output.hpp"
#include "apps/commands/shared_options.hpp"
#include "apps/data/data_set.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/training/session.hpp"
#include "apps/run/weights/mapped_run.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

struct MapArguments {
  std::string run, out, config, data;
  std::vector<std::string> settings;
  int threads = 0;
  bool best = false, json = false;
};

std::string described(const TableHeader& table) {
  return fmt::format("{} x {} {}, {:.2f} GiB", table.rows, table.width, name_of(table.dtype),
                     static_cast<double>(table.file_bytes()) / double(1 << 30));
}

MappedRun map(const MapArguments& arguments) {
  WorkProgress progress("reading the model");
  const TableNews news = [&progress](const std::string& name, const TableHeader& table) {
    log(LogLevel::info, text("map: ", name, ", ", described(table)));
    progress.begin(text("writing ", name, ", in all"), "bytes");
  };
  if (arguments.config.empty())
    return map_run(arguments.run, arguments.best ? CheckpointKind::best : CheckpointKind::newest, arguments.out, news,
                   progress.watch());
  const data::DataSet data = data::DataSet::open(arguments.data);
  const RunConfig config = resolved_config(load_run_config(arguments.config, arguments.settings), data);
  return map_new_model(config, data, arguments.out, arguments.threads, news, progress.watch());
}

void run_map(const MapArguments& arguments) {
  const bool fresh = !arguments.config.empty();
  if (fresh == !arguments.run.empty())
    throw UsageError(text("map: there must be a run or --config, got ", fresh ? "both" : "none",
                          "\n  a run is mapped as it was trained, --config makes a new model"));
  if (fresh == arguments.data.empty())
    throw UsageError(text("map: --data and --config go together, got ", fresh ? "--config" : "--data", " alone",
                          "\n  a new model has the vocabulary of the data, a run has its own"));
  if (!fresh && !arguments.settings.empty())
    throw UsageError("map: --set changes what --config says, got a run, which stays as it was trained");
  if (fresh && arguments.best) throw UsageError("map: --best is for a run, got --config");
  const MappedRun mapped = map(arguments);
  if (arguments.json) {
    nlohmann::json tables = nlohmann::json::array();
    for (const auto& [path, header] : mapped.tables)
      tables.push_back({{"file", path.string()},
                        {"rows", header.rows},
                        {"width", header.width},
                        {"dtype", name_of(header.dtype)},
                        {"row_stride", header.stride},
                        {"bytes", header.file_bytes()}});
    print_json({{"checkpoint", mapped.checkpoint.string()}, {"bytes", mapped.bytes()}, {"tables", tables}});
    return;
  }
  for (const auto& [path, header] : mapped.tables) print(fmt::format("{}: {}\n", path.string(), described(header)));
  print(fmt::format("{}: all other parameters\n", mapped.checkpoint.string()));
}

}  // namespace

Command* add_map_command(Command& program) {
  Command* command = program.add_subcommand("map", "make a run folder whose tables are read from mapped files");
  const auto arguments = std::make_shared<MapArguments>();
  command->add_option("run", arguments->run, "folder of a run, or a checkpoint, that has tables");
  command->add_option("--out", arguments->out, "new folder: evaluate, generate and memory take it as a run")
      ->required();
  command->add_flag("--best", arguments->best, "the run's best checkpoint instead of the newest");
  command->add_option("--config", arguments->config,
                      "instead of a run: a new model of this TOML file, as training would start it");
  command->add_key_settings(arguments->settings, "override keys of the config: section.key=value");
  command->add_option("--data", arguments->data, "with --config: data folder that engram prepare wrote");
  add_threads_option(*command, arguments->threads,
                     "threads that draw a new model's values, without use for a run; 0: all");
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->footer("No table is in memory as a whole: docs/tables.md has the file format.");
  command->callback([arguments] { run_map(*arguments); });
  return command;
}

}  // namespace engram

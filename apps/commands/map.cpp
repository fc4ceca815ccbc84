#include "apps/commands/commands.hpp"

#include <memory>
#include <string>
#include <vector>

#include "apps/commands/model_arguments.hpp"
#include "apps/commands/report_output.hpp"
#include "apps/commands/shared_options.hpp"
#include "apps/data/data_set.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/training/session.hpp"
#include "apps/run/weights/mapped_run.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

struct MapArguments {
  RunArguments trained;
  ReportOutput output;
  std::string out, config, data;
  std::vector<std::string> settings;
  int threads = 0;
};

MappedRun map(const MapArguments& arguments) {
  WorkProgress progress("reading the model");
  const TableNews news = [&progress](const std::string& name, const TableHeader& table) {
    log(LogLevel::info, text("map: ", name, ", ", described(table)));
    progress.begin(text("writing ", name, ", in all"), "bytes");
  };
  if (arguments.config.empty())
    return map_run(arguments.trained.run, arguments.trained.kind(), arguments.out, news, progress.watch());
  const data::DataSet data = data::DataSet::open(arguments.data);
  const RunConfig config = resolved_config(load_run_config(arguments.config, arguments.settings), data);
  return map_new_model(config, data, arguments.out, arguments.threads, news, progress.watch());
}

void run_map(const MapArguments& arguments) {
  const bool fresh = !arguments.config.empty();
  if (fresh == !arguments.trained.run.empty())
    throw UsageError(text("map: there must be a run or --config, got ", fresh ? "both" : "none",
                          "\n  a run is mapped as it was trained, --config makes a new model"));
  if (fresh == arguments.data.empty())
    throw UsageError(text("map: --data and --config go together, got ", fresh ? "--config" : "--data", " alone",
                          "\n  a new model has the vocabulary of the data, a run has its own"));
  if (!fresh && !arguments.settings.empty())
    throw UsageError("map: --set changes what --config says, got a run, which stays as it was trained");
  if (fresh && arguments.trained.kind() == CheckpointKind::best)
    throw UsageError("map: --best is for a run, got --config");
  arguments.output.show(map(arguments));
}

}  // namespace

Command* add_map_command(Command& program) {
  Command* command = program.add_subcommand("map", "make a run folder whose tables are read from mapped files");
  const auto arguments = std::make_shared<MapArguments>();
  command->add_option("run", arguments->trained.run, "folder of a run, or a checkpoint, that has tables");
  command->add_option("--out", arguments->out, "new folder: evaluate, generate and memory take it as a run")
      ->required();
  arguments->trained.add_best(*command);
  command->add_option(
      "--config", arguments->config,
      "instead of a run: a new model of this TOML file (or name of engram configs), as training would start it");
  command->add_key_settings(arguments->settings, "override keys of the config: section.key=value");
  command->add_option("--data", arguments->data, "with --config: data folder that engram prepare wrote");
  add_threads_option(*command, arguments->threads,
                     "threads that draw a new model's values, without use for a run; 0: all");
  arguments->output.add_json(*command);
  command->footer("No table is in memory as a whole: docs/reference/tables.md has the file format.");
  command->callback([arguments] { run_map(*arguments); });
  return command;
}

}  // namespace engram

#include "apps/commands/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/commands/output.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/run/folder/metrics_reader.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

using nlohmann::json;

struct GradientsArguments {
  std::string run, csv;
  bool json = false;
};

std::string table(const json& report) {
  const std::int64_t steps = report.at("steps");
  std::string lines = fmt::format("gradients of the {} steps up to step {}; clip {}\n\n", steps,
                                  report.at("step").get<std::int64_t>(), report.at("clip").get<double>());
  std::size_t width = 6;
  for (const json& tensor : report.at("tensors")) width = std::max(width, tensor.at("name").get<std::string>().size());
  lines += fmt::format("{:<{}} {:>12} {:>12} {:>8}\n", "tensor", width, "mean norm", "largest", "clipped");
  for (const json& tensor : report.at("tensors"))
    lines += fmt::format("{:<{}} {:>12.4e} {:>12.4e} {:>7.1f}%\n", tensor.at("name").get<std::string>(), width,
                         tensor.at("norm").get<double>(), tensor.at("largest").get<double>(),
                         100 * tensor.at("clipped").get<double>());
  if (report.at("spans").empty()) return lines;
  lines += fmt::format(
      "\nwhat moves the spans: derivatives of the loss by zeta at step {}. A span grows while task + penalty is below "
      "0\n\n{:>5} {:>5} {:>12} {:>12} {:>12}\n",
      report.at("step").get<std::int64_t>(), "layer", "head", "task", "penalty", "sum");
  for (const json& layer : report.at("spans")) {
    const double penalty = layer.at("penalty");
    const auto task = layer.at("task").get<std::vector<double>>();
    for (std::size_t head = 0; head < task.size(); ++head)
      lines += fmt::format("{:>5} {:>5} {:>12.4e} {:>12.4e} {:>12.4e}\n", layer.at("layer").get<std::int64_t>(), head,
                           task[head], penalty, task[head] + penalty);
  }
  return lines;
}

std::string csv(const std::vector<json>& reports) {
  std::string lines = "step,tensor,mean_norm,largest_norm,clipped_share\n";
  for (const json& report : reports)
    for (const json& tensor : report.at("tensors"))
      lines += fmt::format("{},{},{},{},{}\n", report.at("step").get<std::int64_t>(),
                           tensor.at("name").get<std::string>(), tensor.at("norm").get<double>(),
                           tensor.at("largest").get<double>(), tensor.at("clipped").get<double>());
  return lines;
}

void run_gradients(const GradientsArguments& arguments) {
  check_output_file("gradients: --csv", arguments.csv, {"step,tensor,"});
  const std::filesystem::path metrics = std::filesystem::path(arguments.run) / "metrics.jsonl";
  WorkProgress progress(text("reading '", metrics.string(), "'"));
  const std::vector<json> reports = read_reports(metrics, "gradients");
  if (reports.empty())
    throw UsageError(text("gradients: '", metrics.string(), "' must have gradient reports, got none",
                          "\n  --set training.gradient_report=true has a run write them, also one that is resumed"));
  if (!arguments.csv.empty()) write_durably(arguments.csv, csv(reports));
  progress.end();
  if (arguments.json) return print_json(json{{"run", arguments.run}, {"reports", reports}});
  print(table(reports.back()));
}

}  // namespace

Command* add_gradients_command(Command& program) {
  Command* command = program.add_subcommand("gradients", "show norms and clipping of gradients, and what moves spans");
  const auto arguments = std::make_shared<GradientsArguments>();
  command->add_option("run", arguments->run, "folder of a run with training.gradient_report = true")->required();
  command->add_option("--csv", arguments->csv, "write the norms of every report to this file");
  command->add_flag("--json", arguments->json, "print all reports as one JSON object");
  command->callback([arguments] { run_gradients(*arguments); });
  return command;
}

}  // namespace engram

#include "apps/run/training/gradient_history.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/run/folder/report_lines.hpp"
#include "core/files/json_integer.hpp"
#include "nn/optim/optimizer.hpp"

namespace engram {

using nlohmann::json;

std::string table_of(const GradientHistory& history) {
  const json& report = history.reports.back();
  const auto steps = integer_of<std::int64_t>(report.at("steps"));
  const double clip = report.at("clip");
  std::string lines = fmt::format("gradients of the {} steps up to step {}; clip {}\n", steps,
                                  integer_of<std::int64_t>(report.at("step")), clip);
  // Clipped together a share says nothing of one tensor. Older logs do not say how they were clipped.
  const bool together = text_in(report, "clip_kind") == name_of(ClipKind::global);
  if (together && clip > 0 && !report.at("tensors").empty())
    lines += fmt::format("clipped together, by the norm of all: {:.1f}% of the steps\n",
                         100 * report.at("tensors")[0].at("clipped").get<double>());
  const bool shares = clip > 0 && !together;
  lines += '\n';
  std::size_t width = 6;
  for (const json& tensor : report.at("tensors")) width = std::max(width, tensor.at("name").get<std::string>().size());
  lines += fmt::format("{:<{}} {:>12} {:>12}{}\n", "tensor", width, "mean norm", "largest", shares ? "  clipped" : "");
  for (const json& tensor : report.at("tensors"))
    lines += fmt::format("{:<{}} {:>12.4e} {:>12.4e}{}\n", tensor.at("name").get<std::string>(), width,
                         tensor.at("norm").get<double>(), tensor.at("largest").get<double>(),
                         shares ? fmt::format(" {:>7.1f}%", 100 * tensor.at("clipped").get<double>()) : std::string());
  if (report.at("spans").empty()) return lines;
  lines += fmt::format(
      "\nwhat moves the spans: derivatives of the loss by zeta at step {}.\nA span grows while task + penalty is below "
      "0\n\n{:>5} {:>5} {:>12} {:>12} {:>12}\n",
      integer_of<std::int64_t>(report.at("step")), "layer", "head", "task", "penalty", "sum");
  for (const json& layer : report.at("spans")) {
    const double penalty = layer.at("penalty");
    const auto task = layer.at("task").get<std::vector<double>>();
    for (std::size_t head = 0; head < task.size(); ++head)
      lines += fmt::format("{:>5} {:>5} {:>12.4e} {:>12.4e} {:>12.4e}\n", integer_of<std::int64_t>(layer.at("layer")),
                           head, task[head], penalty, task[head] + penalty);
  }
  return lines;
}

std::string csv_of(const GradientHistory& history) {
  std::string lines = "step,tensor,mean_norm,largest_norm,clipped_share\n";
  for (const json& report : history.reports)
    for (const json& tensor : report.at("tensors"))
      lines += fmt::format("{},{},{},{},{}\n", integer_of<std::int64_t>(report.at("step")),
                           tensor.at("name").get<std::string>(), tensor.at("norm").get<double>(),
                           tensor.at("largest").get<double>(), tensor.at("clipped").get<double>());
  return lines;
}

json json_of(const GradientHistory& history) { return {{"run", history.run}, {"reports", history.reports}}; }

}  // namespace engram

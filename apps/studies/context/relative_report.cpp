#include "apps/studies/context/relative_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "apps/report/text_table.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

using nlohmann::json;

double mean_loss(const std::vector<double>& losses) {
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

/// By share, then by run.
std::vector<std::vector<RelativeContext>> contexts_of(const RelativeReport& report) {
  std::vector<std::vector<RelativeContext>> contexts;
  for (const double share : report.shares) contexts.push_back(relative_contexts(report.table, share, report.threshold));
  return contexts;
}

bool leaks(const RelativeReport& report, const StudiedRun& run) {
  return report.method == ContextMethod::windowed && run.remembers();
}

/// A model that reads no farther gains nothing: its length is reached.
bool at_least(const StudiedRun& run, const RelativeContext& context) {
  const auto longest = PositionReader::longest(run);
  return !context.is_reached && !(longest && *longest <= context.length);
}

std::string loss_lines(const RelativeReport& report) {
  std::vector<TableColumn> columns{{"length", {}}};
  for (const std::int64_t length : report.table.lengths) columns[0].cells.push_back(fmt::format("{}", length));
  for (std::size_t run = 0; run < report.runs.size(); ++run) {
    columns.push_back({report.runs[run].name, {}});
    for (const auto& losses : report.table.losses[run])
      columns.back().cells.push_back(fmt::format("{:.4f}", mean_loss(losses)));
  }
  return aligned(columns);
}

}  // namespace

std::int64_t effective_length(const StudiedRun& run, const RelativeContext& context) {
  return std::min(context.length, PositionReader::longest(run).value_or(context.length));
}

std::string table_of(const RelativeReport& report) {
  const auto contexts = contexts_of(report);
  std::vector<TableColumn> columns{{"run", {}, true}};
  for (const StudiedRun& run : report.runs) columns[0].cells.push_back(run.name);
  for (std::size_t share = 0; share < report.shares.size(); ++share) {
    columns.push_back({fmt::format("r = {}", report.shares[share]), {}});
    for (std::size_t run = 0; run < report.runs.size(); ++run) {
      const RelativeContext& context = contexts[share][run];
      columns.back().cells.push_back(fmt::format("{}{}", at_least(report.runs[run], context) ? ">= " : "",
                                                 effective_length(report.runs[run], context)));
    }
  }
  std::string lines = fmt::format(
      "{}, split {}, {} positions: relative effective context length, method {}\n\n{}\n{}\n"
      "r: share of the positions, those that the best model finds hardest. Below: mean loss in nats by context "
      "length.\n",
      report.data, report.split, report.table.losses.front().front().size(), name_of(report.method), aligned(columns),
      loss_lines(report));
  for (const StudiedRun& run : report.runs) {
    if (const auto longest = PositionReader::longest(run))
      lines += fmt::format("{} has no memory and reads {} tokens: longer contexts count as that\n", run.name, *longest);
    if (leaks(report, run))
      lines +=
          fmt::format("{} is measured in one pass, where layers leak what is farther back than the length\n", run.name);
  }
  return lines;
}

std::string csv_of(const RelativeReport& report) {
  const auto contexts = contexts_of(report);
  std::string lines =
      "run,share,length,next_length,mean_loss,next_mean_loss,relative_loss,next_relative_loss,gain,recl,at_least\n";
  for (std::size_t run = 0; run < report.runs.size(); ++run)
    for (std::size_t share = 0; share < report.shares.size(); ++share) {
      const RelativeContext& context = contexts[share][run];
      for (std::size_t from = 0; from < context.gains.size(); ++from)
        lines +=
            fmt::format("{},{},{},{},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{},{}\n", csv_field(report.runs[run].name),
                        report.shares[share], report.table.lengths[from], report.table.lengths[from + 1],
                        mean_loss(report.table.losses[run][from]), mean_loss(report.table.losses[run][from + 1]),
                        relative_loss(report.table, run, from, from, report.shares[share]),
                        relative_loss(report.table, run, from, from + 1, report.shares[share]), context.gains[from],
                        effective_length(report.runs[run], context), at_least(report.runs[run], context) ? 1 : 0);
    }
  return lines;
}

json json_of(const RelativeReport& report) {
  const auto contexts = contexts_of(report);
  json object{{"data", report.data},
              {"split", report.split},
              {"method", name_of(report.method)},
              {"positions", report.table.losses.front().front().size()},
              {"seed", report.seed},
              {"threshold", report.threshold},
              {"lengths", report.table.lengths},
              {"runs", json::array()}};
  for (std::size_t run = 0; run < report.runs.size(); ++run) {
    const StudiedRun& studied = report.runs[run];
    const auto longest = PositionReader::longest(studied);
    json one{{"name", studied.name},
             {"checkpoint", studied.checkpoint.string()},
             {"step", studied.step},
             {"reads_at_most", longest ? json(*longest) : json()},
             {"leaks", leaks(report, studied)},
             {"mean_losses", json::array()},
             {"recl", json::array()}};
    for (const auto& losses : report.table.losses[run]) one["mean_losses"].push_back(mean_loss(losses));
    for (std::size_t share = 0; share < report.shares.size(); ++share) {
      const RelativeContext& context = contexts[share][run];
      one["recl"].push_back({{"share", report.shares[share]},
                             {"length", effective_length(studied, context)},
                             {"at_least", at_least(studied, context)},
                             {"gains", context.gains}});
    }
    object["runs"].push_back(std::move(one));
  }
  return object;
}

}  // namespace engram

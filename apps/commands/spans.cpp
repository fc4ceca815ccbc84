#include "apps/commands/commands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/commands/output.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/run/model/trained_model.hpp"
#include "apps/studies/spans/head_spans.hpp"
#include "apps/studies/spans/span_cost.hpp"
#include "apps/studies/spans/span_history.hpp"
#include "apps/studies/spans/span_report.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

struct SpansArguments {
  std::string run;
  std::string csv, svg;
  bool history = false;
  bool cost = false;
  bool best = false;
  bool json = false;
};

struct SpansReport {
  CheckpointFacts facts;
  std::filesystem::path path;
  std::vector<LayerSpans> layers;
  SpanStatistics statistics;
  std::vector<SpanMoment> history;
  std::optional<SpanCost> cost;
  std::int64_t shortfalls = -1;  // of caches; below 0: not known
};

/// A bar whose whole width is the longest span; one mark at least, for what is above 0.
std::string bar(std::int64_t positions, std::int64_t longest) {
  constexpr std::int64_t kWidth = 40;
  return std::string(static_cast<std::size_t>((positions * kWidth + longest - 1) / longest), '#');
}

std::string table(const SpansReport& report) {
  const AllAttentionOptions& model = report.facts.config.model.all_attention;
  std::string lines = fmt::format("{} at step {}\n", report.path.string(), report.facts.step);
  if (model.span == SpanKind::dynamic)
    lines += "spans are computed for every query: these are their means over the last short validation\n";
  lines += model.span != SpanKind::fixed
               ? fmt::format(
                     "zeta is the share of the longest span, {} positions; a head sees zeta * {} + {} positions, "
                     "at most {}\n\n",
                     model.max_span, model.max_span, model.ramp, model.max_span)
               : fmt::format("spans are fixed: every head sees {} positions\n\n", model.max_span);
  lines += fmt::format("{:>5} {:>5} {:>8} {:>10}\n", "layer", "head", "zeta", "positions");
  for (std::size_t layer = 0; layer < report.layers.size(); ++layer)
    for (std::size_t head = 0; head < report.layers[layer].size(); ++head)
      lines +=
          fmt::format("{:>5} {:>5} {:>8.5f} {:>10}  {}\n", layer, head, report.layers[layer][head].zeta,
                      report.layers[layer][head].positions, bar(report.layers[layer][head].positions, model.max_span));
  lines += fmt::format("\n{:>5} {:>10} {:>10} {:>10}  positions\n", "layer", "least", "mean", "most");
  for (std::size_t layer = 0; layer < report.layers.size(); ++layer) {
    const LayerRange range = range_of(report.layers[layer]);
    lines += fmt::format("{:>5} {:>10} {:>10.1f} {:>10}\n", layer, range.least, range.mean, range.most);
  }
  const SpanStatistics& all = report.statistics;
  lines += fmt::format("\nmean over all heads {:.1f} positions, {:.1f}% of the longest span\n", all.mean_positions,
                       100 * all.mean_positions / static_cast<double>(model.max_span));
  lines += fmt::format("average as the released code has it {:.1f} positions, largest of a layer {:.1f}\n",
                       all.released_mean, all.released_most);
  if (model.span == SpanKind::dynamic)
    return lines + fmt::format(
                       "attention to the context costs {:.3f} MFLOP a token in training: spans of queries save "
                       "none\n",
                       all.flops_full / 1e6);
  return lines +
         fmt::format(
             "attention to the context costs {:.3f} MFLOP a token in training, {:.1f}% of {:.3f} at the longest "
             "span\n({:.3f} if all heads of a layer computed its longest window)\n",
             all.flops_ragged / 1e6, 100 * all.flops_ragged / all.flops_full, all.flops_full / 1e6,
             all.flops_layer / 1e6);
}

std::string history_table(const std::vector<SpanMoment>& history) {
  constexpr std::size_t kLines = 30;
  std::string lines = fmt::format("\n{:>9} {:>10} {:>10} {:>14}  positions\n", "step", "mean", "most", "released mean");
  const std::size_t stride = std::max<std::size_t>(1, (history.size() + kLines - 1) / kLines);
  for (std::size_t i = 0; i < history.size(); ++i) {
    // Counted from the end, so that the last report is always there.
    if ((history.size() - 1 - i) % stride != 0) continue;
    const SpanMoment& moment = history[i];
    lines += fmt::format("{:>9} {:>10.1f} {:>10.1f} {:>14.1f}\n", moment.step, moment.mean, moment.longest,
                         moment.released_mean);
  }
  return lines;
}

std::string csv(const std::vector<LayerSpans>& layers) {
  std::string lines = "layer,head,zeta,span_positions,visible_positions\n";
  for (std::size_t layer = 0; layer < layers.size(); ++layer)
    for (std::size_t head = 0; head < layers[layer].size(); ++head)
      lines += fmt::format("{},{},{},{},{}\n", layer, head, layers[layer][head].zeta, layers[layer][head].span,
                           layers[layer][head].positions);
  return lines;
}

std::string history_csv(const std::vector<SpanMoment>& history) {
  std::string lines = "step,layer,head,visible_positions\n";
  for (const SpanMoment& moment : history)
    for (std::size_t layer = 0; layer < moment.heads.size(); ++layer)
      for (std::size_t head = 0; head < moment.heads[layer].size(); ++head)
        lines += fmt::format("{},{},{},{}\n", moment.step, layer, head, moment.heads[layer][head]);
  return lines;
}

nlohmann::json as_json(const SpansReport& report, bool history) {
  const AllAttentionOptions& model = report.facts.config.model.all_attention;
  const SpanStatistics& all = report.statistics;
  nlohmann::json layers = nlohmann::json::array();
  for (const LayerSpans& heads : report.layers) {
    const LayerRange range = range_of(heads);
    nlohmann::json layer{{"least_positions", range.least},
                         {"mean_positions", range.mean},
                         {"most_positions", range.most},
                         {"heads", nlohmann::json::array()}};
    for (const HeadSpan& head : heads)
      layer["heads"].push_back(
          {{"zeta", head.zeta}, {"span_positions", head.span}, {"visible_positions", head.positions}});
    layers.push_back(std::move(layer));
  }
  nlohmann::json object{
      {"checkpoint", report.path.string()},
      {"step", report.facts.step},
      {"adaptive", model.span != SpanKind::fixed},
      {"longest_span_positions", model.max_span},
      {"ramp_positions", model.ramp},
      {"layers", layers},
      {"mean_positions", all.mean_positions},
      {"most_positions", all.most_positions},
      {"released_mean_positions", all.released_mean},
      {"released_most_positions", all.released_most},
      {"context_flops_per_token",
       {{"ragged", all.flops_ragged}, {"longest_of_layer", all.flops_layer}, {"full", all.flops_full}}},
      {"share_of_full_attention", all.flops_ragged / all.flops_full}};
  if (report.cost) object["cost"] = cost_json(*report.cost, report.shortfalls);
  if (!history) return object;
  object["history"] = nlohmann::json::array();
  for (const SpanMoment& moment : report.history)
    object["history"].push_back({{"step", moment.step},
                                 {"mean_positions", moment.mean},
                                 {"most_positions", moment.longest},
                                 {"released_mean_positions", moment.released_mean},
                                 {"visible_positions", moment.heads}});
  return object;
}

/// The newest count that a report of the run has, up to the checkpoint's step.
std::int64_t shortfalls_of(const std::vector<SpanMoment>& history, std::int64_t step) {
  std::int64_t count = -1;
  for (const SpanMoment& moment : history)
    if (moment.step <= step) count = moment.cache_shortfalls;
  return count;
}

void run_spans(const SpansArguments& arguments) {
  check_output_file("spans: --csv", arguments.csv, {"layer,head,zeta,", "step,layer,head,"});
  check_output_file("spans: --svg", arguments.svg, {kSvgBeginning});
  const std::filesystem::path run_dir = arguments.run;
  WorkProgress progress(text("reading '", arguments.run, "'"));
  const CheckpointFile file(find_checkpoint(run_dir, arguments.best ? CheckpointKind::best : CheckpointKind::newest));
  SpansReport report{.facts = read_facts(file),
                     .path = file.path(),
                     .layers = {},
                     .statistics = {},
                     .history = {},
                     .cost = {},
                     .shortfalls = -1};
  const RunConfig& config = report.facts.config;
  const AllAttentionOptions& model = require_all_attention(config.model, "spans");
  report.layers = read_spans(file, model);
  report.statistics = span_statistics(model, report.layers, config.training.block);
  const std::filesystem::path metrics = run_dir / "metrics.jsonl";
  if (arguments.history) report.history = read_span_history(metrics);
  if (arguments.cost) {
    report.cost = span_cost(config, report.layers);
    std::error_code ignored;
    if (std::filesystem::exists(metrics, ignored))
      report.shortfalls = shortfalls_of(read_span_history(metrics), report.facts.step);
  }
  if (!arguments.csv.empty())
    write_durably(arguments.csv, arguments.history ? history_csv(report.history) : csv(report.layers));
  if (!arguments.svg.empty()) {
    const std::string name = fmt::format("{} at step {}", arguments.run, report.facts.step);
    write_durably(arguments.svg, draw_spans(model, report.layers, name, report.history));
  }
  progress.end();
  if (arguments.json) return print_json(as_json(report, arguments.history));
  print(table(report) + (arguments.history ? history_table(report.history) : "") +
        (report.cost ? "\n" + cost_table(config, *report.cost, report.shortfalls) : ""));
}

}  // namespace

Command* add_spans_command(Command& program) {
  Command* command = program.add_subcommand("spans", "show how far each head of a trained model looks back");
  const auto arguments = std::make_shared<SpansArguments>();
  command->add_option("run", arguments->run, "folder of a run, or a checkpoint file")->required();
  command->add_option("--csv", arguments->csv,
                      "write zeta and positions of every head to this file; with --history those of every report");
  command->add_option(
      "--svg", arguments->svg,
      "draw the heads of every layer into this file; with --history also the layers' means over the steps");
  command->add_flag("--history", arguments->history, "how they changed, from the run's metrics.jsonl");
  command->add_flag("--cost", arguments->cost, "what the spans save, in arithmetic and in memory for caches");
  command->add_flag("--best", arguments->best, "the run's best checkpoint instead of the newest");
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments] { run_spans(*arguments); });
  return command;
}

}  // namespace engram

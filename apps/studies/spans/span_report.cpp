#include "apps/studies/spans/span_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "apps/report/heat_map.hpp"
#include "apps/report/line_chart.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

/// A bar whose whole width is the longest span; one mark at least, for what is above 0.
std::string span_bar(std::int64_t positions, std::int64_t longest) {
  constexpr std::int64_t kBarWidth = 40;
  return std::string(static_cast<std::size_t>((positions * kBarWidth + longest - 1) / longest), '#');
}

std::string spans_table(const SpanReport& report) {
  const AllAttentionOptions& model = report.model;
  std::string lines = fmt::format("{} at step {}\n", report.checkpoint, report.step);
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
      lines += fmt::format("{:>5} {:>5} {:>8.5f} {:>10}  {}\n", layer, head, report.layers[layer][head].zeta,
                           report.layers[layer][head].positions,
                           span_bar(report.layers[layer][head].positions, model.max_span));
  lines += fmt::format("\n{:>5} {:>10} {:>10} {:>10}  (positions)\n", "layer", "least", "mean", "most");
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
  std::string lines =
      fmt::format("\n{:>9} {:>10} {:>10} {:>14}  (positions)\n", "step", "mean", "most", "released mean");
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

std::string spans_csv(const std::vector<LayerSpans>& layers) {
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

HeatMap spans_map(const SpanReport& report) {
  const AllAttentionOptions& model = report.model;
  const std::vector<LayerSpans>& layers = report.layers;
  HeatMap map;
  map.title = "Positions that each head sees, " + report.name;
  map.note = model.span != SpanKind::fixed
                 ? fmt::format("adaptive spans: min(S, ceil(S zeta) + R) with S = {} and R = {} positions",
                               model.max_span, model.ramp)
                 : fmt::format("fixed spans: every head sees S = {} positions", model.max_span);
  map.row_title = "layer";
  map.column_title = "head";
  map.row_note_title = "least / mean / most";
  map.scale = {static_cast<double>(std::min(model.max_span, model.ramp)), static_cast<double>(model.max_span), true};
  map.scale_title = "positions";
  std::size_t columns = 0;
  for (const LayerSpans& heads : layers) columns = std::max(columns, heads.size());
  for (std::size_t head = 0; head < columns; ++head) map.columns.push_back(std::to_string(head));
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    const LayerRange range = range_of(layers[layer]);
    map.rows.push_back(std::to_string(layer));
    map.row_notes.push_back(fmt::format("{} / {:.1f} / {}", range.least, range.mean, range.most));
    for (std::size_t head = 0; head < columns; ++head) {
      if (head >= layers[layer].size()) {
        map.values.push_back(std::numeric_limits<double>::quiet_NaN());
        map.cell_texts.emplace_back();
        map.tooltips.emplace_back();
        continue;
      }
      const HeadSpan& span = layers[layer][head];
      map.values.push_back(static_cast<double>(span.positions));
      map.cell_texts.push_back(std::to_string(span.positions));
      map.tooltips.push_back(
          fmt::format("layer {}, head {}: zeta {:.5f}, {} positions", layer, head, span.zeta, span.positions));
    }
  }
  return map;
}

std::optional<LineChart> history_chart(const std::optional<std::vector<SpanMoment>>& moments) {
  if (!moments || moments->empty()) return std::nullopt;
  const std::vector<SpanMoment>& history = *moments;
  LineChart chart;
  chart.title = "Mean span of each layer while training";
  chart.x_title = "step";
  chart.y_title = "positions";
  LineChart::Line mean{.name = "all heads", .points = {}, .main = true};
  std::vector<LineChart::Line> layers(history.back().heads.size());
  for (std::size_t layer = 0; layer < layers.size(); ++layer) layers[layer].name = fmt::format("layer {}", layer);
  for (const SpanMoment& moment : history) {
    const auto step = static_cast<double>(moment.step);
    mean.points.emplace_back(step, moment.mean);
    for (std::size_t layer = 0; layer < std::min(layers.size(), moment.heads.size()); ++layer) {
      const std::vector<std::int64_t>& heads = moment.heads[layer];
      if (heads.empty()) continue;
      const auto sum = static_cast<double>(std::accumulate(heads.begin(), heads.end(), std::int64_t{0}));
      layers[layer].points.emplace_back(step, sum / static_cast<double>(heads.size()));
    }
  }
  std::erase_if(layers, [](const LineChart::Line& line) { return line.points.empty(); });
  chart.lines = std::move(layers);
  chart.lines.push_back(std::move(mean));
  return chart;
}

}  // namespace

std::string table_of(const SpanReport& report) {
  return spans_table(report) + (report.history ? history_table(*report.history) : "") +
         (report.cost ? "\n" + table_of(*report.cost) : "");
}

std::string csv_of(const SpanReport& report) {
  return report.history ? history_csv(*report.history) : spans_csv(report.layers);
}

nlohmann::json json_of(const SpanReport& report) {
  const AllAttentionOptions& model = report.model;
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
      {"checkpoint", report.checkpoint},
      {"step", report.step},
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
  if (report.cost) object["cost"] = json_of(*report.cost);
  if (!report.history) return object;
  object["history"] = nlohmann::json::array();
  for (const SpanMoment& moment : *report.history)
    object["history"].push_back({{"step", moment.step},
                                 {"mean_positions", moment.mean},
                                 {"most_positions", moment.longest},
                                 {"released_mean_positions", moment.released_mean},
                                 {"visible_positions", moment.heads}});
  return object;
}

std::string svg_of(const SpanReport& report) {
  const HeatMap map = spans_map(report);
  const std::optional<LineChart> chart = history_chart(report.history);
  const SvgSize above = heat_map_size(map), below = chart ? line_chart_size(*chart) : SvgSize{};
  SvgCanvas canvas({std::max(above.width, below.width), above.height + below.height}, map.title);
  draw_heat_map(canvas, 0, 0, map);
  if (chart) draw_line_chart(canvas, 0, above.height, *chart);
  return canvas.document();
}

}  // namespace engram

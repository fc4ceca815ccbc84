#include "apps/studies/spans/span_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "apps/report/heat_map.hpp"
#include "apps/report/line_chart.hpp"

namespace engram {
namespace {

HeatMap map_of(const AllAttentionOptions& model, const std::vector<LayerSpans>& layers, const std::string& name) {
  HeatMap map;
  map.title = "Positions that each head sees, " + name;
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

std::optional<LineChart> chart_of(const std::vector<SpanMoment>& history) {
  if (history.empty()) return std::nullopt;
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

std::string draw_spans(const AllAttentionOptions& model, const std::vector<LayerSpans>& layers, const std::string& name,
                       const std::vector<SpanMoment>& history) {
  const HeatMap map = map_of(model, layers, name);
  const std::optional<LineChart> chart = chart_of(history);
  const SvgSize above = heat_map_size(map), below = chart ? line_chart_size(*chart) : SvgSize{};
  SvgCanvas canvas({std::max(above.width, below.width), above.height + below.height}, map.title);
  draw_heat_map(canvas, 0, 0, map);
  if (chart) draw_line_chart(canvas, 0, above.height, *chart);
  return canvas.document();
}

}  // namespace engram

#include "apps/studies/context/length_report.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "apps/report/line_chart.hpp"
#include "apps/report/text_table.hpp"
#include "apps/run/evaluation/score.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

using nlohmann::json;

constexpr std::string_view kMemory = "memory", kWindow = "windows";

std::string_view reads(const StudiedRun& run) { return run.remembers() ? kMemory : kWindow; }

std::string run_lines(const LengthReport& report) {
  std::vector<TableColumn> columns{{"run", {}, true}, {"reads", {}, true}, {"init", {}},  {"trained at", {}},
                                   {"best", {}},      {"at", {}},          {"length", {}}};
  for (const LengthCurve& curve : report.curves) {
    const LengthSummary summary = summarise(curve, report.kind, report.tolerance);
    const std::string cells[] = {curve.run.name,
                                 std::string(reads(curve.run)),
                                 fmt::format("{:.4f}", summary.init),
                                 fmt::format("{}", curve.run.training_length()),
                                 fmt::format("{:.4f}", summary.best),
                                 fmt::format("{}", summary.best_length),
                                 fmt::format("{}", summary.attention_length)};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  return aligned(columns);
}

std::string point_lines(const LengthReport& report, std::set<std::string>& notes) {
  std::map<std::int64_t, std::vector<std::string>> rows;
  for (const LengthCurve& curve : report.curves)
    for (const LengthPoint& point : curve.points) rows[point.length].resize(report.curves.size(), "");
  std::vector<TableColumn> columns{{"length", {}}};
  for (std::size_t i = 0; i < report.curves.size(); ++i) {
    const LengthCurve& curve = report.curves[i];
    columns.push_back({curve.run.name, {}});
    for (const LengthPoint& point : curve.points) {
      rows[point.length][i] = point.nll ? fmt::format("{:.4f}", score_of(report.kind, *point.nll)) : std::string("-");
      if (!point.note.empty()) notes.insert(text(curve.run.name, ", ", point.note));
    }
  }
  for (const auto& [length, cells] : rows) {
    columns[0].cells.push_back(fmt::format("{}", length));
    for (std::size_t i = 0; i < cells.size(); ++i) columns[i + 1].cells.push_back(cells[i]);
  }
  return aligned(columns);
}

json curve_json(const LengthReport& report, const LengthCurve& curve) {
  const std::string score(score_name(report.kind));
  const LengthSummary summary = summarise(curve, report.kind, report.tolerance);
  json object{{"name", curve.run.name},
              {"checkpoint", curve.run.checkpoint.string()},
              {"step", curve.run.step},
              {"reads", reads(curve.run)},
              {"training_length", curve.run.training_length()},
              {"init", summary.init},
              {"best", summary.best},
              {"best_length", summary.best_length},
              {"attention_length", summary.attention_length},
              {"points", json::array()}};
  for (const LengthPoint& point : curve.points)
    object["points"].push_back({{"length", point.length},
                                {"keys", point.keys},
                                {"stride", point.stride},
                                {"possible", point.nll.has_value()},
                                {"nll", point.nll ? json(*point.nll) : json()},
                                {score, point.nll ? json(score_of(report.kind, *point.nll)) : json()},
                                {"scored", point.scored},
                                {"seconds", point.seconds},
                                {"note", point.note}});
  return object;
}

}  // namespace

double usual_tolerance(data::TokenKind kind) { return kind == data::TokenKind::character ? 0.001 : 0.01; }

std::string line_of(const StudiedRun& run, const LengthPoint& point, data::TokenKind kind) {
  if (!point.nll) return fmt::format("{}, length {}: {}", run.name, point.length, point.note);
  return fmt::format("{}, length {}: {} {:.4f} in {:.1f} s", run.name, point.length, score_name(kind),
                     score_of(kind, *point.nll), point.seconds);
}

std::string table_of(const LengthReport& report) {
  const std::string_view score = score_name(report.kind);
  std::set<std::string> notes;
  std::string lines = fmt::format("{}, split {}, {} tokens: {} by attention length\n\n{}\n", report.data, report.split,
                                  report.tokens, score, run_lines(report));
  lines += point_lines(report, notes);
  lines += fmt::format(
      "\ninit: {0} at the training length; best: the lowest {0}; length: the smallest within {1} of it.\n"
      "Lengths are positions remembered (memory) or windows read from nothing for every {2} new tokens.\n",
      score, report.tolerance,
      report.options.stride > 0 ? fmt::format("{} (at most the length)", report.options.stride)
                                : std::string("length / 4"));
  for (const std::string& note : notes) lines += note + "\n";
  return lines;
}

std::string csv_of(const LengthReport& report) {
  std::string lines =
      fmt::format("run,reads,training_length,length,keys,stride,scored,nll,{},seconds,note\n", score_name(report.kind));
  for (const LengthCurve& curve : report.curves)
    for (const LengthPoint& point : curve.points)
      lines += fmt::format("{},{},{},{},{},{},{},{},{},{:.3f},{}\n", csv_field(curve.run.name), reads(curve.run),
                           curve.run.training_length(), point.length, point.keys, point.stride, point.scored,
                           point.nll ? fmt::format("{:.6f}", *point.nll) : "",
                           point.nll ? fmt::format("{:.6f}", score_of(report.kind, *point.nll)) : "", point.seconds,
                           csv_field(point.note));
  return lines;
}

json json_of(const LengthReport& report) {
  json object{{"data", report.data},
              {"split", report.split},
              {"tokens", report.tokens},
              {"score", score_name(report.kind)},
              {"tolerance", report.tolerance},
              {"clamp", report.options.clamp ? json(*report.options.clamp) : json()},
              {"same_length", report.options.same_length},
              {"exact", report.options.exact},
              {"runs", json::array()}};
  for (const LengthCurve& curve : report.curves) object["runs"].push_back(curve_json(report, curve));
  return object;
}

std::string svg_of(const LengthReport& report) {
  LineChart chart;
  chart.title = fmt::format("Attention length, {} tokens of split {}", report.tokens, report.split);
  chart.x_title = "positions remembered, or of a window";
  chart.y_title = report.kind == data::TokenKind::character ? "bits per character" : "perplexity";
  chart.from_zero = false;
  for (const LengthCurve& curve : report.curves) {
    LineChart::Line line{.name = curve.run.name, .points = {}};
    for (const LengthPoint& point : curve.points)
      if (point.nll) line.points.emplace_back(static_cast<double>(point.length), score_of(report.kind, *point.nll));
    if (!line.points.empty()) chart.lines.push_back(std::move(line));
  }
  if (chart.lines.empty()) throw UsageError("lengths: nothing to draw, as no length is possible for any run");
  SvgCanvas canvas(line_chart_size(chart), chart.title);
  draw_line_chart(canvas, 0, 0, chart);
  return canvas.document();
}

}  // namespace engram

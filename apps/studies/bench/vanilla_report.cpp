#include "apps/studies/bench/vanilla_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "apps/report/line_chart.hpp"
#include "apps/run/cost/sliding_window_cost.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

LayerSizes sizes_of(const VanillaBenchCase& bench) {
  return {bench.config.model.transformer_xl.width, bench.config.model.transformer_xl.inner};
}

/// By the formulas, of the released program or with all of the past kept.
double predicted(const VanillaBenchCase& bench, std::int64_t length, const XlEvaluation& evaluation,
                 FutureKeys future) {
  const LayerSizes layer = sizes_of(bench);
  return sliding_window_flops(layer, length, future) /
         (evaluation.cached ? cached_xl_flops(layer, length) : released_xl_flops(layer, length, evaluation.segment));
}

/// The ways that the formulas tell apart: what is cached costs the same in segments of every length.
constexpr std::size_t kPredicted = 3;

std::string name_of(const XlEvaluation& evaluation, bool whole) {
  return fmt::format("{}, S={}", evaluation.cached ? "cached" : "states",
                     whole ? "A" : fmt::format("{}", kShortSegment));
}
/// Of comparison.evaluations[i]: S = A first, then the short segments.
std::string name_of(const VanillaComparison& comparison, std::size_t i) {
  return name_of(comparison.evaluations[i], i % 2 == 0);
}

std::string sizes_text(const VanillaBenchCase& bench) {
  const TransformerXlOptions& model = bench.config.model.transformer_xl;
  return fmt::format("{}: N={} D={} H={} d_h={} F={} V={} B={}{}", bench.name, model.layers, model.width, model.heads,
                     model.head_depth(), model.inner, model.vocabulary, bench.config.training.batch,
                     model.clamp > 0 ? fmt::format(" clamp={}", model.clamp) : std::string());
}

}  // namespace

std::string table_of(const VanillaBenchCase& bench, const std::vector<VanillaComparison>& comparisons,
                     std::int64_t steps) {
  if (comparisons.empty()) return {};
  const std::vector<XlEvaluation>& ways = comparisons.front().evaluations;
  std::string text = fmt::format(
      "\nEvaluation of one token at attention length A: a window of A tokens (vanilla) against a memory of A\n{}\n"
      "median of {} alternating forward passes; how many times as long the vanilla model takes\n",
      sizes_text(bench), steps);
  text += fmt::format("  {:>6} {:>12}", "A", "vanilla ms");
  for (std::size_t i = 0; i < ways.size(); ++i)
    text += fmt::format(" {:>24}", name_of(comparisons.front(), i) + " us: times");
  text += '\n';
  for (const VanillaComparison& comparison : comparisons) {
    text += fmt::format("  {:>6} {:>12.2f}", comparison.attention_length, comparison.vanilla_seconds * 1e3);
    for (const XlEvaluation& evaluation : comparison.evaluations)
      text += fmt::format(" {:>15.1f} {:>8.1f}", evaluation.seconds * 1e6, comparison.slowdown(evaluation));
    text += '\n';
  }
  text +=
      "By the formulas at these sizes, of layers alone; states as the released program projects them; in brackets a\n"
      "vanilla model that skips future keys\n";
  text += fmt::format("  {:>6}", "A");
  for (std::size_t i = 0; i < kPredicted; ++i)
    text += fmt::format(" {:>20}", i == 2 ? "cached" : name_of(comparisons.front(), i));
  text += fmt::format(" {:>20}\n", "paper, table 9");
  for (const VanillaComparison& comparison : comparisons) {
    const std::int64_t length = comparison.attention_length;
    text += fmt::format("  {:>6}", length);
    for (std::size_t i = 0; i < kPredicted; ++i) {
      const XlEvaluation& way = comparison.evaluations[i];
      text += fmt::format(" {:>20}", fmt::format("{:.1f} ({:.1f})", predicted(bench, length, way, FutureKeys::computed),
                                                 predicted(bench, length, way, FutureKeys::skipped)));
    }
    if (const std::optional<double> paper = published_slowdown(length)) text += fmt::format(" {:>20.0f}", *paper);
    text += '\n';
  }
  return text;
}

nlohmann::json json_of(const VanillaBenchCase& bench, const std::vector<VanillaComparison>& comparisons,
                       std::int64_t steps) {
  const TransformerXlOptions& model = bench.config.model.transformer_xl;
  nlohmann::json lengths = nlohmann::json::array();
  for (const VanillaComparison& comparison : comparisons) {
    const std::int64_t length = comparison.attention_length;
    nlohmann::json ways = nlohmann::json::array();
    for (const XlEvaluation& evaluation : comparison.evaluations)
      ways.push_back(
          {{"segment", evaluation.segment},
           {"cached", evaluation.cached},
           {"microseconds_a_token", evaluation.seconds * 1e6},
           {"slowdown", comparison.slowdown(evaluation)},
           {"slowdown_by_formulas", predicted(bench, length, evaluation, FutureKeys::computed)},
           {"slowdown_by_formulas_skipping_future_keys", predicted(bench, length, evaluation, FutureKeys::skipped)}});
    lengths.push_back({{"attention_length", length},
                       {"vanilla_microseconds_a_token", comparison.vanilla_seconds * 1e6},
                       {"evaluations", ways}});
    if (const std::optional<double> paper = published_slowdown(length)) lengths.back()["paper_slowdown"] = *paper;
  }
  return {{"name", bench.name},   {"layers", model.layers}, {"width", model.width},
          {"heads", model.heads}, {"inner", model.inner},   {"batch", bench.config.training.batch},
          {"clamp", model.clamp}, {"steps", steps},         {"lengths", lengths}};
}

std::string svg_of(const VanillaBenchCase& bench, const std::vector<VanillaComparison>& comparisons) {
  std::vector<const VanillaComparison*> sorted;
  for (const VanillaComparison& comparison : comparisons) sorted.push_back(&comparison);
  std::ranges::sort(sorted, {}, [](const VanillaComparison* one) { return one->attention_length; });
  LineChart chart;
  chart.title = "Evaluation with a sliding window against Transformer-XL";
  chart.x_title = "attention length, positions";
  chart.y_title = "times as long per token";
  const auto add = [&](std::string name, auto value) {
    LineChart::Line line{.name = std::move(name), .points = {}};
    for (const VanillaComparison* comparison : sorted)
      if (const std::optional<double> y = value(*comparison))
        line.points.emplace_back(static_cast<double>(comparison->attention_length), *y);
    if (!line.points.empty()) chart.lines.push_back(std::move(line));
  };
  const std::size_t ways = sorted.front()->evaluations.size();
  for (std::size_t i = 0; i < ways; ++i)
    add("measured: " + name_of(*sorted.front(), i), [i](const VanillaComparison& comparison) {
      return std::optional(comparison.slowdown(comparison.evaluations[i]));
    });
  for (std::size_t i = 0; i < kPredicted; ++i)
    add("formula: " + (i == 2 ? std::string("cached") : name_of(*sorted.front(), i)),
        [&bench, i](const VanillaComparison& comparison) {
          return std::optional(
              predicted(bench, comparison.attention_length, comparison.evaluations[i], FutureKeys::computed));
        });
  add("formula: cached, future keys skipped", [&bench](const VanillaComparison& comparison) {
    constexpr std::size_t kCached = 2;
    return std::optional(
        predicted(bench, comparison.attention_length, comparison.evaluations[kCached], FutureKeys::skipped));
  });
  add("paper, one GPU",
      [](const VanillaComparison& comparison) { return published_slowdown(comparison.attention_length); });
  SvgCanvas canvas(line_chart_size(chart), chart.title);
  draw_line_chart(canvas, 0, 0, chart);
  return canvas.document();
}

}  // namespace engram

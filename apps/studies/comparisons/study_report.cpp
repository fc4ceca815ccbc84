#include "apps/studies/comparisons/study_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "apps/report/text_table.hpp"
#include "apps/run/evaluation/score.hpp"
#include "apps/studies/sweeps/sweep_result.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

using nlohmann::json;

/// A difference of losses as people compare them: bits of a character, per cent of a perplexity.
double shown_difference(double nats, data::TokenKind kind) {
  return kind == data::TokenKind::character ? nats / std::numbers::ln2 : std::expm1(nats) * 100;
}

std::string_view difference_unit(data::TokenKind kind) {
  return kind == data::TokenKind::character ? " bits per character" : "% perplexity";
}

std::string magnitude(double nats, data::TokenKind kind) {
  return kind == data::TokenKind::character ? fmt::format("{:.4f}", std::abs(shown_difference(nats, kind)))
                                            : fmt::format("{:.2f}", std::abs(shown_difference(nats, kind)));
}

std::string_view side(double nats) { return nats < 0 ? "lower" : "higher"; }

std::optional<Spread> scores_of(const StudyVariantResult& of, data::TokenKind kind) {
  std::vector<std::optional<double>> scores;
  for (const StudyRunResult& run : of.runs)
    scores.push_back(run.loss ? std::optional(score_of(kind, *run.loss)) : std::nullopt);
  return spread_of(scores);
}

std::string budgets_text(const StudyPlan& plan) {
  std::string list;
  for (const Budget budget : plan.equal)
    list += text(list.empty() ? "" : ", ", name_of(budget),
                 budget == Budget::parameters ? fmt::format(" within {:g}%", plan.tolerance * 100) : "");
  return list;
}

std::string tokens_text(std::int64_t tokens) { return fmt::format("{:.2f}M", static_cast<double>(tokens) / 1e6); }

std::string variants_table(const StudyReport& report) {
  const data::TokenKind kind = report.kind;
  TableColumn name{"variant", {}, true}, parameters{"parameters", {}}, flops{"MFLOP", {}}, tokens{"tokens", {}};
  TableColumn test{text("test ", score_name(kind)), {}}, range{"range", {}};
  for (const StudyVariantResult& of : report.variants) {
    const StudyVariant& variant = of.variant;
    name.cells.push_back(variant.name);
    parameters.cells.push_back(text(variant.parameters));
    flops.cells.push_back(fmt::format("{:.2f}", variant.flops / 1e6));
    tokens.cells.push_back(tokens_text(variant.steps * variant.step_tokens));
    const std::optional<Spread> spread = scores_of(of, kind);
    test.cells.push_back(spread ? fmt::format("{:.4f}", spread->mean) : "-");
    range.cells.push_back(spread ? fmt::format("{:.4f} to {:.4f}", spread->least, spread->most) : "-");
  }
  return aligned({name, parameters, flops, tokens, test, range});
}

/// Of the trials that were made so far.
std::string trials_table(const StudyReport& report) {
  std::vector<TableColumn> columns{{"variant", {}, true}, {"rate", {}}};
  for (const double multiple : report.plan.rates) columns.push_back({fmt::format("x{:g}", multiple), {}});
  for (const StudyVariantResult& of : report.variants) {
    columns[0].cells.push_back(of.variant.name);
    columns[1].cells.push_back(of.rate ? fmt::format("{:g}", of.variant.rate * *of.rate) : "-");
    for (std::size_t i = 0; i < report.plan.rates.size(); ++i) {
      const bool scored = i < of.trials.size() && of.trials[i].loss;
      columns[i + 2].cells.push_back(scored ? fmt::format("{:.3f}", score_of(report.kind, *of.trials[i].loss)) : "-");
    }
  }
  return aligned(columns);
}

/// Why a comparison has no losses of a variant, in words; empty: it has those of all its seeds.
std::string lacking(const StudyReport& report, const std::string& name) {
  const auto of = std::ranges::find(
      report.variants, name, [](const StudyVariantResult& one) -> const std::string& { return one.variant.name; });
  if (of == report.variants.end()) return "";
  if (!of->rate) return text("no trial of ", name, " has a loss");
  for (const StudyRunResult& run : of->runs)
    if (!run.loss) return text(run.name, " has no loss");
  return "";
}

std::string words_of_verdict(const StudyComparison& comparison, const StudyReport& report) {
  if (!comparison.measured) {
    const std::string left = lacking(report, comparison.left), right = lacking(report, comparison.right);
    if (left.empty() && right.empty()) return "fewer than two blocks are scored alike";
    return left.empty() || right.empty() ? left + right : text(left, ", ", right);
  }
  const PairedDifference& found = *comparison.measured;
  std::string words = difference_text(found, report.kind, report.plan.confidence);
  if (comparison.verdict == StudyVerdict::none_seen && !comparison.alike)
    words += text("\n      a difference of ", magnitude(found.half_width(), report.kind), " would have been seen");
  return words;
}

std::string cautions(const StudyReport& report) {
  std::string lines;
  for (const StudyVariantResult& of : report.variants) {
    if (of.rate_at_end)
      lines += text("note: the best rate of ", of.variant.name, " is at the end of those tried;\n",
                    "      a rate beyond may be better\n");
    for (const std::vector<StudyRunResult>* runs : {&of.trials, &of.runs})
      for (const StudyRunResult& run : *runs)
        if (!run.reason.empty()) lines += text("note: ", run.name, " ", run.reason, "\n");
  }
  for (const StudyComparison& comparison : report.comparisons)
    if (comparison.measured && comparison.measured->blocks_hang_together())
      lines += fmt::format(
          "note: neighbouring blocks of {} and {} hang together\n"
          "      (correlation {:.2f}): longer blocks would widen the interval\n",
          comparison.left, comparison.right, comparison.measured->neighbours);
  return lines;
}

json run_json(const StudyRunResult& run) {
  return {{"name", run.name},
          {"nats", run.loss ? json(*run.loss) : json()},
          {"tokens_per_second", run.tokens_per_s ? json(*run.tokens_per_s) : json()},
          {"reason", run.reason}};
}

json comparison_json(const StudyComparison& comparison) {
  json object{{"claim", comparison.claim},
              {"left", comparison.left},
              {"right", comparison.right},
              {"alike_within", comparison.alike ? json(*comparison.alike) : json()},
              {"verdict", name_of(comparison.verdict)},
              {"difference", nullptr}};
  if (!comparison.measured) return object;
  const PairedDifference& found = *comparison.measured;
  object.update({{"difference", found.difference},
                 {"low", found.low},
                 {"high", found.high},
                 {"standard_error", found.standard_error},
                 {"degrees_of_freedom", found.freedom},
                 {"block_error", found.block_error},
                 {"seed_error", found.seed_error},
                 {"blocks", found.blocks},
                 {"correlation_of_neighbours", found.neighbours}});
  return object;
}

json variant_json(const StudyVariant& variant) {
  return {{"name", variant.name},
          {"parameters", variant.parameters},
          {"flops", variant.flops},
          {"steps", variant.steps},
          {"tokens", variant.steps * variant.step_tokens},
          {"rate", variant.rate}};
}

}  // namespace

std::string difference_text(const PairedDifference& difference, data::TokenKind kind, double confidence) {
  const auto [low, high] = std::pair(difference.low, difference.high);
  const std::string per_cent = fmt::format("{:g}%", confidence * 100);
  std::string interval;
  if (difference.is_below_zero())
    interval = text(magnitude(high, kind), " to ", magnitude(low, kind), " lower");
  else if (difference.is_above_zero())
    interval = text(magnitude(low, kind), " to ", magnitude(high, kind), " higher");
  else
    interval = text(magnitude(low, kind), " lower to ", magnitude(high, kind), " higher");
  return text(magnitude(difference.difference, kind), difference_unit(kind), " ", side(difference.difference), " (",
              per_cent, ": ", interval, ")");
}

std::string table_of(const StudyReport& report) {
  const StudyPlan& plan = report.plan;
  std::string lines = text(plan.title, "\n\n", variants_table(report));
  lines += fmt::format("equal: {}; MFLOP of training a token\n", budgets_text(plan));
  lines += fmt::format("mean and range over {} seeds; {} blocks of {} tokens of test\n\n", plan.seeds.size(),
                       report.blocks, plan.block);
  lines += fmt::format("{}rates tried, as multiples of each variant's own: valid {} of the trial\n\n",
                       trials_table(report), score_name(report.kind));
  std::string last;
  for (const StudyComparison& comparison : report.comparisons) {
    if (comparison.claim != last) lines += comparison.claim + "\n";
    last = comparison.claim;
    const std::string sign = comparison.alike ? fmt::format("~{:g}%", *comparison.alike * 100) : "<";
    lines += fmt::format("  {:<19} {} {} {}\n      {}\n", name_of(comparison.verdict), comparison.left, sign,
                         comparison.right, words_of_verdict(comparison, report));
  }
  return lines + cautions(report);
}

std::string csv_of(const StudyReport& report) {
  std::string lines =
      "claim,left,right,alike_within,verdict,difference_nats,low,high,standard_error,degrees_of_freedom,block_error,"
      "seed_error,blocks,correlation_of_neighbours\n";
  for (const StudyComparison& comparison : report.comparisons) {
    lines += fmt::format("{},{},{},{},{}", csv_field(comparison.claim), csv_field(comparison.left),
                         csv_field(comparison.right), comparison.alike ? fmt::format("{:g}", *comparison.alike) : "",
                         name_of(comparison.verdict));
    if (const std::optional<PairedDifference>& found = comparison.measured)
      lines += fmt::format(",{:.8f},{:.8f},{:.8f},{:.8f},{:.3f},{:.8f},{:.8f},{},{:.4f}\n", found->difference,
                           found->low, found->high, found->standard_error, found->freedom, found->block_error,
                           found->seed_error, found->blocks, found->neighbours);
    else
      lines += ",,,,,,,,,\n";
  }
  return lines;
}

json json_of(const StudyReport& report) {
  json object{{"study", report.plan.name},
              {"title", report.plan.title},
              {"config", report.plan.config.string()},
              {"data", report.options.data.string()},
              {"budget", report.options.budget},
              {"token_kind", name_of(report.kind)},
              {"seeds", report.plan.seeds},
              {"confidence", report.plan.confidence},
              {"block", report.plan.block},
              {"blocks", report.blocks},
              {"variants", json::array()},
              {"comparisons", json::array()}};
  for (const StudyVariantResult& of : report.variants) {
    json one = variant_json(of.variant);
    one["chosen_rate"] = of.rate ? json(of.variant.rate * *of.rate) : json();
    one["rate_at_end"] = of.rate_at_end;
    for (const auto& [name, runs] : {std::pair{"trials", &of.trials}, std::pair{"runs", &of.runs}}) {
      one[name] = json::array();
      for (const StudyRunResult& run : *runs) one[name].push_back(run_json(run));
    }
    object["variants"].push_back(std::move(one));
  }
  for (const StudyComparison& comparison : report.comparisons)
    object["comparisons"].push_back(comparison_json(comparison));
  return object;
}

std::string svg_of(const StudyReport& report) {
  const data::TokenKind kind = report.kind;
  Plot plot{.title = report.plan.title, .x = {}, .y = {}, .series = {{"difference", {}, false}}};
  plot.y.title = kind == data::TokenKind::character ? "bits per character" : "perplexity, %";
  for (const StudyComparison& comparison : report.comparisons) {
    if (!comparison.measured) continue;
    const PairedDifference& found = *comparison.measured;
    plot.series[0].points.push_back(
        {.x = static_cast<double>(plot.x.names.size()),
         .y = shown_difference(found.difference, kind),
         .across = {},
         .up = PlotRange{shown_difference(found.low, kind), shown_difference(found.high, kind)},
         .runs = static_cast<std::int64_t>(report.plan.seeds.size())});
    plot.x.names.push_back(comparison.left + " - " + comparison.right);
  }
  if (plot.x.names.empty()) throw UsageError("study: a figure needs a comparison whose runs are done, got none");
  const auto count = static_cast<double>(plot.x.names.size());
  plot.series.push_back({"no difference", {{.x = -0.5, .y = 0}, {.x = count - 0.5, .y = 0}}, true});
  FigurePage page{.width = 340, .height = 260};
  page.note =
      fmt::format("Mean loss of the first minus that of the second, with {:g}% intervals over {} blocks and {} seeds.",
                  report.plan.confidence * 100, report.blocks, report.plan.seeds.size());
  return figure_of_plots({plot}, page, report.plan.title);
}

std::string table_of(const StudyForecast& forecast) {
  const StudyPlan& plan = forecast.plan;
  TableColumn name{"variant", {}, true}, parameters{"parameters", {}}, flops{"MFLOP", {}};
  TableColumn trials{"trials", {}}, trial_tokens{"tokens", {}}, runs{"runs", {}}, tokens{"tokens", {}};
  TableColumn minutes{"minutes", {}};
  double all = 0;
  for (std::size_t v = 0; v < forecast.variants.size(); ++v) {
    const StudyVariant& variant = forecast.variants[v];
    const std::int64_t trial_steps = variant.trial_steps(plan);
    const auto steps = static_cast<double>(plan.rates.size()) * static_cast<double>(trial_steps) +
                       static_cast<double>(plan.seeds.size()) * static_cast<double>(variant.steps);
    const double seconds = steps * forecast.step_seconds[v];
    all += seconds;
    name.cells.push_back(variant.name);
    parameters.cells.push_back(text(variant.parameters));
    flops.cells.push_back(fmt::format("{:.2f}", variant.flops / 1e6));
    trials.cells.push_back(text(plan.rates.size()));
    trial_tokens.cells.push_back(tokens_text(trial_steps * variant.step_tokens));
    runs.cells.push_back(text(plan.seeds.size()));
    tokens.cells.push_back(tokens_text(variant.steps * variant.step_tokens));
    minutes.cells.push_back(fmt::format("{:.1f}", seconds / 60));
  }
  return text(plan.title, "\n\n", aligned({name, parameters, flops, trials, trial_tokens, runs, tokens, minutes}),
              fmt::format("equal: {}; MFLOP of training a token\n{:.0f} minutes of training by five steps of each\n"
                          "after every run {} tokens are read\n",
                          budgets_text(plan), std::ceil(all / 60), forecast.held_out_tokens));
}

json json_of(const StudyForecast& forecast) {
  json object{
      {"study", forecast.plan.name},  {"budget", forecast.options.budget},           {"trials", forecast.plan.rates},
      {"seeds", forecast.plan.seeds}, {"held_out_tokens", forecast.held_out_tokens}, {"variants", json::array()}};
  for (std::size_t v = 0; v < forecast.variants.size(); ++v) {
    json one = variant_json(forecast.variants[v]);
    one["trial_steps"] = forecast.variants[v].trial_steps(forecast.plan);
    one["step_seconds"] = forecast.step_seconds[v];
    object["variants"].push_back(std::move(one));
  }
  return object;
}

}  // namespace engram

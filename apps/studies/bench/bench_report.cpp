#include "apps/studies/bench/bench_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/files/json.hpp"

namespace engram {
namespace {

constexpr double kGiga = 1e9, kMebi = 1 << 20;

struct KernelRow {
  std::string name;
  std::int64_t calls;       // per step
  double seconds;           // per step
  double flops_per_second;  // 0: no formula
  double floor_seconds;     // per step; 0: nothing that is counted
  std::int64_t launches;    // per step
};

/// Per step, longest first; what the kernels do not account for comes last.
std::vector<KernelRow> kernel_rows(const BenchResult& result, const MachineLimits& limits) {
  const auto steps = static_cast<std::int64_t>(result.seconds.size());
  std::vector<KernelRow> rows;
  std::int64_t outside = result.launches;
  for (const auto& [name, total] : result.kernels.totals()) {
    const double seconds = total.seconds / static_cast<double>(steps);
    rows.push_back({name, total.calls / steps, seconds, result.kernel_flops(name) / seconds,
                    result.kernel_floor(name, limits), total.launches / steps});
    outside -= rows.back().launches;
  }
  std::ranges::sort(rows, std::ranges::greater{}, &KernelRow::seconds);
  rows.push_back({"(outside kernels)", 0,
                  (result.observed_seconds - result.kernels.seconds()) / static_cast<double>(steps), 0, 0, outside});
  return rows;
}

/// Of a step whose kernels are observed.
double mean_seconds(const BenchResult& result) {
  return result.observed_seconds / static_cast<double>(result.seconds.size());
}

std::string spans_text(const BenchCase& bench) {
  if (bench.spans.empty()) return fmt::format("all at {}", bench.config.model.all_attention.max_span);
  std::string text;
  for (const std::int64_t span : bench.spans) text += fmt::format("{}{}", text.empty() ? "" : ",", span);
  return text;
}

// Of each family: what its queries see, of so many positions in the mean, for people and for programs; and the sizes
// that its cost depends on, in the letters of its papers: S is the longest span, or the segment, M a block.

std::string window_of(const AllAttentionOptions&, const BenchCase& bench, double window) {
  return fmt::format("spans {} (mean {:.1f} positions)", spans_text(bench), window);
}
nlohmann::json window_values(const AllAttentionOptions&, const BenchCase& bench, double window) {
  return {{"spans", bench.spans}, {"mean_span_positions", window}};
}
std::string sizes_of(const AllAttentionOptions& model, const TrainingOptions& training) {
  return fmt::format("L={} d={} H={} N={} F={} S={} B={} M={}", model.layers, model.width, model.heads, model.slots,
                     model.inner, model.max_span, training.batch, training.block);
}

std::string window_of(const TransformerXlOptions& model, const BenchCase&, double window) {
  return fmt::format("memory {} (mean {:.1f} positions)", model.memory, window);
}
nlohmann::json window_values(const TransformerXlOptions& model, const BenchCase&, double window) {
  return {{"memory_positions", model.memory}, {"mean_visible_positions", window}};
}
std::string sizes_of(const TransformerXlOptions& model, const TrainingOptions& training) {
  return fmt::format("L={} d={} H={} F={} S={} B={}", model.layers, model.width, model.heads, model.inner,
                     training.block, training.batch);
}

std::string window_of(const ProductKeyTransformerOptions&, const BenchCase&, double window) {
  return fmt::format("windows of a block (mean {:.1f} positions)", window);
}
nlohmann::json window_values(const ProductKeyTransformerOptions&, const BenchCase&, double window) {
  return {{"mean_visible_positions", window}};
}
std::string sizes_of(const ProductKeyTransformerOptions& model, const TrainingOptions& training) {
  return fmt::format("L={} d={} H={} F={} M={} B={}", model.layers, model.width, model.heads,
                     model.feed_forward_width(), training.block, training.batch);
}

std::string window_of(const RecurrentOptions& model, const BenchCase&, double window) {
  return fmt::format("{} of {:.0f} earlier positions", name_of(model.readout), window);
}
nlohmann::json window_values(const RecurrentOptions& model, const BenchCase&, double window) {
  return {{"readout", name_of(model.readout)}, {"window_positions", window}};
}
std::string sizes_of(const RecurrentOptions& model, const TrainingOptions& training) {
  return fmt::format("{}V={} w={} k={} d={} T={} B={}", model.layers == 1 ? "" : fmt::format("L={} ", model.layers),
                     model.vocabulary, model.vector_width(), model.width, model.hidden_width(), training.block,
                     training.batch);
}

std::string window_text(const BenchCase& bench, double window) {
  return with_own_options(bench.config.model, [&](const auto& own) { return window_of(own, bench, window); });
}
nlohmann::json window_json(const BenchCase& bench, double window) {
  nlohmann::json object =
      with_own_options(bench.config.model, [&](const auto& own) { return window_values(own, bench, window); });
  object["name"] = bench.name;
  object["family"] = name_of(bench.config.model.family);
  return object;
}
std::string sizes_text(const RunConfig& config) {
  return with_own_options(config.model, [&](const auto& own) { return sizes_of(own, config.training); });
}

}  // namespace

std::string table_of(const MachineLimits& limits) {
  std::string text = "This machine, through the library's kernels\n";
  for (const MachineLimits::Product& product : limits.products)
    text += fmt::format("  {} product {}x{}x{}: {:.1f} GFLOP/s\n", name_of(product.precision), product.rows,
                        product.columns, product.inner, product.flops_per_second / kGiga);
  if (limits.bf16_flops_per_second == 0)
    text += "  bf16 product: the device has no instructions that make it faster than f32\n";
  return text + fmt::format("  copy {:.1f} GB/s, softmax {:.2f} G exponentials/s\n", limits.bytes_per_second / kGiga,
                            limits.exponentials_per_second / kGiga);
}

nlohmann::json json_of(const MachineLimits& limits) {
  nlohmann::json products = nlohmann::json::array();
  for (const MachineLimits::Product& product : limits.products)
    products.push_back({{"precision", name_of(product.precision)},
                        {"rows", product.rows},
                        {"columns", product.columns},
                        {"inner", product.inner},
                        {"flops_per_second", product.flops_per_second}});
  return {{"products", products},
          {"product_flops_per_second", limits.flops_per_second},
          {"bf16_product_flops_per_second", limits.bf16_flops_per_second},
          {"copy_bytes_per_second", limits.bytes_per_second},
          {"exponentials_per_second", limits.exponentials_per_second}};
}

namespace {

std::string rank_lines(const BenchResult& result) {
  const RankBench& found = result.rank_bench;
  std::string lines = fmt::format("  {} ranks", found.ranks);
  if (found.alone_seconds > 0)
    lines += fmt::format(": {:.3f} of {} times one rank, which takes {:.1f} ms a step alone", result.efficiency(),
                         found.ranks, found.alone_seconds * 1e3);
  lines += fmt::format("\n  rank 0 sends {:.3f} MB a step; gradients are on their way for {:.2f} ms,\n",
                       static_cast<double>(found.bytes_sent) / 1e6, found.exchange_seconds * 1e3);
  return lines + fmt::format("  {:.1f}% of it hidden ({:.2f} ms waited); updates wait {:.2f} ms for values and norms\n",
                             100 * found.hidden(), found.exchange_waited * 1e3, found.gather_seconds * 1e3);
}

nlohmann::json ranks_json(const BenchResult& result) {
  const RankBench& found = result.rank_bench;
  nlohmann::json object{{"ranks", found.ranks},
                        {"bytes_sent_per_step", found.bytes_sent},
                        {"milliseconds_exchange", found.exchange_seconds * 1e3},
                        {"milliseconds_exchange_waited", found.exchange_waited * 1e3},
                        {"hidden_share", found.hidden()},
                        {"milliseconds_gather", found.gather_seconds * 1e3}};
  if (found.alone_seconds > 0)
    object.update({{"milliseconds_one_rank", found.alone_seconds * 1e3}, {"efficiency", result.efficiency()}});
  return object;
}

}  // namespace

std::string table_of(const BenchCase& bench, const BenchResult& result, const MachineLimits& limits) {
  const double median = result.median_seconds();
  std::string text = fmt::format("\n{}: {}, {}, {} parameters\n", bench.name, sizes_text(bench.config),
                                 window_text(bench, result.cost.window), result.parameters);
  text += fmt::format("  {:.1f} ms a step, median of {} ({:.1f} to {:.1f}); {:.0f} tokens/s\n", median * 1e3,
                      result.seconds.size(), result.seconds.front() * 1e3, result.seconds.back() * 1e3,
                      result.tokens_per_second());
  if (!result.seconds_one_by_one.empty())
    text += fmt::format("  replayed; {:.1f} ms with kernels handed over one by one, {:.2f} times as long\n",
                        result.median_one_by_one() * 1e3, result.median_one_by_one() / median);
  if (result.rank_bench.ranks > 1) text += rank_lines(result);
  const bool rounded = bench.config.training.products == ProductPrecision::bf16;
  text += fmt::format("  {:.1f} GFLOP/s of the formulas, {:.1f}% of the product rate{}{}\n",
                      result.flops_per_second() / kGiga, 100 * result.flops_per_second() / limits.flops_per_second,
                      rounded ? " (operands rounded to bf16)" : "", result.rank_bench.ranks > 1 ? ", each rank" : "");
  text += fmt::format("  {:.2f} times the floor of {:.1f} ms that this machine's limits set\n",
                      median / result.least_seconds, result.least_seconds * 1e3);
  text +=
      fmt::format("  memory: {:.1f} MiB parameters with gradients and state, {:.1f} MiB step, {:.1f} MiB process\n",
                  static_cast<double>(result.parameter_bytes) / kMebi, static_cast<double>(result.arena_bytes) / kMebi,
                  static_cast<double>(result.resident_bytes) / kMebi);
  if (result.device_bytes > 0)
    text += fmt::format("  on the device: {:.1f} MiB in all\n", static_cast<double>(result.device_bytes) / kMebi);
  const bool counted = result.launches > 0;
  if (counted) text += fmt::format("  {} launches of kernels, products and copies a step\n", result.launches);
  text += fmt::format("  {:<24} {:>7} {}{:>10} {:>7} {:>9} {:>9} {:>9}\n", "kernel", "calls",
                      counted ? fmt::format("{:>8} ", "launches") : "", "ms/step", "share", "GFLOP/s", "floor ms",
                      "x floor");
  const double mean = mean_seconds(result);
  for (const KernelRow& row : kernel_rows(result, limits)) {
    text +=
        fmt::format("  {:<24} {:>7} {}{:>10.2f} {:>6.1f}%", row.name, row.calls,
                    counted ? fmt::format("{:>8} ", row.launches) : "", row.seconds * 1e3, 100 * row.seconds / mean);
    text += row.flops_per_second > 0 ? fmt::format(" {:>9.1f}", row.flops_per_second / kGiga) : std::string(10, ' ');
    if (row.floor_seconds > 0)
      text += fmt::format(" {:>9.2f} {:>9.2f}", row.floor_seconds * 1e3, row.seconds / row.floor_seconds);
    while (text.back() == ' ') text.pop_back();
    text += '\n';
  }
  return text;
}

nlohmann::json json_of(const BenchCase& bench, const BenchResult& result, const MachineLimits& limits) {
  const double mean = mean_seconds(result);
  nlohmann::json kernels = nlohmann::json::array();
  for (const KernelRow& row : kernel_rows(result, limits)) {
    kernels.push_back({{"kernel", row.name},
                       {"calls_per_step", row.calls},
                       {"milliseconds_per_step", row.seconds * 1e3},
                       {"share", row.seconds / mean}});
    if (result.launches > 0) kernels.back()["launches_per_step"] = row.launches;
    if (row.flops_per_second > 0) kernels.back()["flops_per_second"] = row.flops_per_second;
    if (row.floor_seconds > 0) kernels.back()["milliseconds_floor"] = row.floor_seconds * 1e3;
  }
  nlohmann::json object = window_json(bench, result.cost.window);
  object.update({{"products", name_of(bench.config.training.products)},
                 {"parameters", result.parameters},
                 {"tokens_per_step", result.tokens},
                 {"steps", result.seconds.size()},
                 {"milliseconds_median", result.median_seconds() * 1e3},
                 {"milliseconds_fastest", result.seconds.front() * 1e3},
                 {"milliseconds_slowest", result.seconds.back() * 1e3},
                 {"milliseconds_floor", result.least_seconds * 1e3},
                 {"tokens_per_second", result.tokens_per_second()},
                 {"flops_per_token", result.cost.training.total()},
                 {"flops_per_second", result.flops_per_second()},
                 {"share_of_product_rate", result.flops_per_second() / limits.flops_per_second},
                 {"parameter_bytes", result.parameter_bytes},
                 {"step_bytes", result.arena_bytes},
                 {"process_bytes", result.resident_bytes},
                 {"device_bytes", result.device_bytes},
                 {"milliseconds_one_by_one", result.median_one_by_one() * 1e3},
                 {"kernels", kernels}});
  if (result.launches > 0) object["launches_per_step"] = result.launches;
  if (result.rank_bench.ranks > 1) object["ranks"] = ranks_json(result);
  return object;
}

std::string table_of(const BenchCase& bench, const InferenceResult& result) {
  std::string text = fmt::format("\n{} with frozen weights, {}\n", bench.name, window_text(bench, result.window));
  const bool rings = has_rings(bench.config.model);
  text += fmt::format("  {:>6} {:>7} {:>9} {:>9} {:>14} {:>8}", "block", "streams", "ms", "tokens/s", "MFLOP a token",
                      "GFLOP/s");
  if (rings)
    text +=
        fmt::format(" {:>6} {:>18} {:>7} {:>11} {:>6}", "C/M", "as in training, ms", "saved", "by formulas", "ratio");
  text += '\n';
  for (const BlockInference& one : result.blocks) {
    text += fmt::format("  {:>6} {:>7} {:>9.2f} {:>9.0f} {:>14.2f} {:>8.1f}", one.block, one.streams,
                        one.frozen_seconds * 1e3, one.tokens_per_second(), one.frozen_flops / 1e6,
                        one.frozen_flops * one.tokens_per_second() / kGiga);
    if (rings)
      text +=
          fmt::format(" {:>6.1f} {:>18.2f} {:>6.1f}% {:>10.1f}% {:>6}", one.cached_blocks, one.forward_seconds * 1e3,
                      100 * one.saving(), 100 * one.predicted_saving(),
                      one.predicted_saving() > 0 ? fmt::format("{:.2f}", one.saving() / one.predicted_saving()) : "-");
    text += '\n';
  }
  text +=
      fmt::format("  {:<10} {:>7} {:>18} {:>9} {:>12} {:>9}\n", "generation", "streams",
                  fmt::format("prompt of {}, ms", bench.config.training.block), "tokens/s", "a token, ms", "tokens/s");
  for (const GenerationRate& rate : result.generation)
    text += fmt::format("  {:<10} {:>7} {:>18.2f} {:>9.0f} {:>12.3f} {:>9.0f}\n", "", rate.streams,
                        rate.prompt_seconds * 1e3, rate.prompt_tokens_per_second(), rate.token_seconds * 1e3,
                        rate.tokens_per_second());
  return text + fmt::format("  one token of one stream: {:.2f} times the floor of {:.3f} ms ({:.1f} MB)\n",
                            result.generation[0].token_seconds / result.token_floor_seconds,
                            result.token_floor_seconds * 1e3, result.token_bytes / 1e6);
}

nlohmann::json json_of(const BenchCase& bench, const InferenceResult& result) {
  nlohmann::json blocks = nlohmann::json::array();
  for (const BlockInference& one : result.blocks) {
    blocks.push_back({{"block", one.block},
                      {"streams", one.streams},
                      {"milliseconds_frozen", one.frozen_seconds * 1e3},
                      {"tokens_per_second", one.tokens_per_second()},
                      {"flops_per_token", one.frozen_flops}});
    if (has_rings(bench.config.model))
      blocks.back().update({{"cached_blocks", one.cached_blocks},
                            {"milliseconds_as_in_training", one.forward_seconds * 1e3},
                            {"saving", one.saving()},
                            {"saving_by_formulas", one.predicted_saving()}});
  }
  nlohmann::json object = window_json(bench, result.window);
  object["blocks"] = blocks;
  nlohmann::json rates = nlohmann::json::array();
  for (const GenerationRate& rate : result.generation)
    rates.push_back({{"streams", rate.streams},
                     {"prompt", rate.prompt},
                     {"milliseconds_a_prompt", rate.prompt_seconds * 1e3},
                     {"prompt_tokens_per_second", rate.prompt_tokens_per_second()},
                     {"milliseconds_a_token", rate.token_seconds * 1e3},
                     {"tokens_per_second", rate.tokens_per_second()}});
  object["generation"] = {{"rates", rates},
                          {"milliseconds_a_token", result.generation[0].token_seconds * 1e3},
                          {"milliseconds_floor", result.token_floor_seconds * 1e3},
                          {"bytes", result.token_bytes}};
  return object;
}

SpanComparison compare_spans(const SpanRuns& runs) {
  const auto seconds = [](const BenchResult& a, const BenchResult& b) {
    return a.attention_seconds() / b.attention_seconds();
  };
  const auto flops = [](const BenchResult& a, const BenchResult& b) {
    return a.cost.training.attention() / b.cost.training.attention();
  };
  return {seconds(runs.full_context, runs.ragged_context),
          flops(runs.full_context, runs.ragged_context),
          seconds(runs.full, runs.ragged),
          flops(runs.full, runs.ragged),
          runs.full.median_seconds() / runs.ragged.median_seconds(),
          runs.full.cost.training.total() / runs.ragged.cost.training.total()};
}

std::string table_of(const SpanComparison& comparison) {
  const auto line = [](std::string_view what, double measured, double formula) {
    return fmt::format("  {:<56} {:>8.2f} {:>10.2f}\n", what, measured, formula);
  };
  return fmt::format("\n{:<58} {:>8} {:>10}\n", "Every head at the longest span against the ragged spans", "times",
                     "by FLOPs") +
         line("attention to the context, projecting the past included", comparison.context_measured,
              comparison.context_formula) +
         line("the same kernels with persistent slots", comparison.attention_measured, comparison.attention_formula) +
         line("whole step", comparison.step_measured, comparison.step_formula);
}

nlohmann::json json_of(const SpanComparison& comparison) {
  const auto ratio = [](double measured, double formula) {
    return nlohmann::json{{"measured", measured}, {"formula", formula}};
  };
  return {{"context", ratio(comparison.context_measured, comparison.context_formula)},
          {"attention", ratio(comparison.attention_measured, comparison.attention_formula)},
          {"step", ratio(comparison.step_measured, comparison.step_formula)}};
}

}  // namespace engram

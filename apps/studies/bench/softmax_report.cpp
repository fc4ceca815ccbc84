#include "apps/studies/bench/softmax_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

#include "apps/run/cost/cluster_shares.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

constexpr double kMilli = 1e3;

std::string softmax_lines(const char* name, const SoftmaxRun& run, const MachineLimits& limits) {
  const double median = run.median_seconds(), floor = run.floor_seconds(limits);
  std::string text =
      fmt::format("  {}: {:.1f} ms a step of {} tokens, median of {} ({:.1f} to {:.1f}); {:.2f} ms per 1000 tokens\n",
                  name, median * kMilli, run.tokens, run.seconds.size(), run.seconds.front() * kMilli,
                  run.seconds.back() * kMilli, run.seconds_per_1000() * kMilli);
  text +=
      fmt::format("    {:.2f} times the floor of its products ({:.2f} to {:.2f}), at their rate between the steps\n",
                  run.median_times_floor(), run.times_floor.front(), run.times_floor.back());
  text += fmt::format("    {:.1f} MFLOP a token in products, {:.2f} times their floor of {:.1f} ms at the rate above\n",
                      run.flops / 1e6, median / floor, floor * kMilli);
  text += fmt::format("    {:<20} {:>6} {:>10}\n", "kernel", "calls", "ms/step");
  std::vector<std::pair<double, std::string>> rows;
  const auto steps = static_cast<std::int64_t>(run.seconds.size());
  for (const auto& [kernel, total] : run.kernels.totals())
    rows.emplace_back(total.seconds / static_cast<double>(steps),
                      fmt::format("    {:<20} {:>6} {:>10.2f}\n", kernel, total.calls / steps,
                                  total.seconds / static_cast<double>(steps) * kMilli));
  std::ranges::sort(rows, std::greater{});
  for (const auto& row : rows) text += row.second;
  return text;
}

nlohmann::json softmax_run_json(const SoftmaxRun& run, const MachineLimits& limits) {
  const auto steps = static_cast<double>(run.seconds.size());
  nlohmann::json kernels = nlohmann::json::object();
  for (const auto& [kernel, total] : run.kernels.totals()) kernels[kernel] = total.seconds / steps * kMilli;
  return {{"tokens_per_step", run.tokens},
          {"steps", run.seconds.size()},
          {"milliseconds_median", run.median_seconds() * kMilli},
          {"milliseconds_fastest", run.seconds.front() * kMilli},
          {"milliseconds_slowest", run.seconds.back() * kMilli},
          {"milliseconds_per_1000_tokens", run.seconds_per_1000() * kMilli},
          {"flops_per_token", run.flops},
          {"milliseconds_floor", run.floor_seconds(limits) * kMilli},
          {"times_floor", run.median_times_floor()},
          {"times_floor_least", run.times_floor.front()},
          {"times_floor_most", run.times_floor.back()},
          {"times_floor_of_limits", run.median_seconds() / run.floor_seconds(limits)},
          {"kernel_milliseconds", kernels}};
}

}  // namespace

std::string table_of(const SoftmaxBench& bench, const SoftmaxResult& result, const MachineLimits& limits) {
  std::string text = fmt::format("\nInput and output of a word model: V={} d={} cut-offs {}; words in the clusters",
                                 bench.model.vocabulary, bench.model.width, fmt::join(bench.model.cutoffs, ", "));
  for (const double share : result.adaptive.cluster_shares) text += fmt::format(" {:.2f}%", 100 * share);
  text += fmt::format(", drawn in proportion to rank^-{}\n", kRankExponent);
  text += softmax_lines("adaptive", result.adaptive, limits);
  text += softmax_lines("full softmax", result.full, limits);
  return text + fmt::format("  the full softmax takes {:.1f} times as long for each token\n",
                            result.full.seconds_per_1000() / result.adaptive.seconds_per_1000());
}

nlohmann::json json_of(const SoftmaxBench& bench, const SoftmaxResult& result, const MachineLimits& limits) {
  return {{"vocabulary", bench.model.vocabulary},
          {"width", bench.model.width},
          {"cutoffs", bench.model.cutoffs},
          {"cluster_shares", result.adaptive.cluster_shares},
          {"rank_exponent", kRankExponent},
          {"adaptive", softmax_run_json(result.adaptive, limits)},
          {"full", softmax_run_json(result.full, limits)}};
}

}  // namespace engram

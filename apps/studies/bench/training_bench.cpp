#include "apps/studies/bench/training_bench.hpp"

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>
#include <utility>

#include "apps/run/folder/resident_memory.hpp"
#include "apps/run/training/rank_split.hpp"
#include "apps/studies/bench/rehearsal.hpp"
#include "core/communicator.hpp"
#include "core/launch_count.hpp"

namespace engram {
namespace {

constexpr std::int64_t kWarmUpSteps = 2;
/// Until a step is replayed: both buffers of the caches are filled, then each of the two is met three times.
constexpr std::int64_t kStepsUntilReplay = 8;

}  // namespace

double BenchResult::attention_seconds() const {
  double sum = 0;
  for (const auto& [name, total] : kernels.totals())
    if (name.starts_with("attention_") || name.starts_with("project_past_")) sum += total.seconds;
  return sum / static_cast<double>(seconds.size());
}

double BenchResult::kernel_flops(std::string_view kernel) const {
  const TrainingFlops& flops = cost.training;
  // What these kernels multiply themselves is no product of matmul's.
  const bool whole_softmax = kernels.totals().contains("linear_cross_entropy");
  const double elsewhere = 2 * cost.recurrence_flops + (whole_softmax ? cost.output_flops : 0);
  const double per_token = kernel == "matmul"                  ? flops.products - elsewhere
                           : kernel == "linear_cross_entropy"  ? cost.output_flops
                           : kernel == "recurrence_forward"    ? cost.recurrence_flops
                           : kernel == "recurrence_backward"   ? cost.recurrence_flops
                           : kernel == "attention_forward"     ? flops.attention_forward
                           : kernel == "attention_backward"    ? flops.attention_backward
                           : kernel == "project_past_forward"  ? flops.past_forward
                           : kernel == "project_past_backward" ? flops.past_backward
                                                               : 0;
  return per_token * static_cast<double>(own_tokens);
}

double BenchResult::kernel_exponentials(std::string_view kernel) const {
  const double per_token =
      kernel == "attention_forward" || kernel == "attention_backward"                ? cost.attention_exponentials
      : kernel == "cross_entropy" || kernel == "linear_cross_entropy"                ? cost.output_exponentials
      : kernel == "recurrence_forward" || kernel == "quasi_recurrence_forward"       ? cost.recurrence_exponentials
      : kernel == "window_additive_weights" || kernel == "window_additive_gradients" ? cost.window_exponentials
                                                                                     : 0;
  return per_token * static_cast<double>(own_tokens);
}

double BenchResult::kernel_floor(std::string_view kernel, const MachineLimits& limits) const {
  const auto entry = kernels.totals().find(kernel);
  const double bytes = entry == kernels.totals().end() ? 0 : entry->second.bytes / static_cast<double>(seconds.size());
  return std::max({kernel_flops(kernel) / limits.flops_per_second,
                   kernel_exponentials(kernel) / limits.exponentials_per_second, bytes / limits.bytes_per_second});
}

namespace {

/// What was added to both in so many steps, for one.
RankBench costs_between(const ExchangeCosts& exchange_before, const ExchangeCosts& exchange,
                        const ExchangeCosts& gather_before, const ExchangeCosts& gather, std::int64_t steps) {
  const auto count = static_cast<double>(steps);
  return {.bytes_sent =
              (exchange.bytes_sent - exchange_before.bytes_sent + gather.bytes_sent - gather_before.bytes_sent) / steps,
          .exchange_seconds = (exchange.seconds - exchange_before.seconds) / count,
          .exchange_waited = (exchange.seconds_waited - exchange_before.seconds_waited) / count,
          .gather_seconds = (gather.seconds - gather_before.seconds) / count};
}

}  // namespace

namespace {

BenchResult rehearse(Rehearsal& rehearsal, const BenchCase& bench, const MachineLimits& limits, Runtime& runtime,
                     std::int64_t steps) {
  rehearsal.fill_caches();
  BenchResult result(runtime.backend());
  std::vector<double> observed;
  const bool behind = runtime.backend().works_behind();
  rehearsal.train(behind ? kStepsUntilReplay : kWarmUpSteps, nullptr, behind);
  const ExchangeCosts exchange = rehearsal.exchange_costs(), gather = rehearsal.gather_costs();
  const std::clock_t processor = std::clock();
  result.seconds = rehearsal.train(steps, behind ? nullptr : &result.kernels, behind);
  result.processor_seconds =
      static_cast<double>(std::clock() - processor) / (double{CLOCKS_PER_SEC} * static_cast<double>(steps));
  result.rank_bench = costs_between(exchange, rehearsal.exchange_costs(), gather, rehearsal.gather_costs(), steps);
  if (behind) {
    result.seconds_one_by_one = rehearsal.train(steps, nullptr, false);
    const std::int64_t launches = launch_count(runtime.backend());
    observed = rehearsal.train(steps, &result.kernels, false);
    result.launches = (launch_count(runtime.backend()) - launches) / steps;
  } else {
    observed = result.seconds;
  }
  result.rank_bench.ranks = runtime.ranks().size();
  for (const double seconds : observed) result.observed_seconds += seconds;

  const RunConfig& config = bench.config;
  result.cost = rehearsal.cost();
  result.tokens = config.training.batch * config.training.block;
  result.own_tokens = result.tokens / result.rank_bench.ranks;
  result.parameters = rehearsal.parameters();
  result.parameter_bytes = rehearsal.parameter_bytes();
  result.arena_bytes = rehearsal.arena_bytes();
  result.resident_bytes = peak_resident_bytes();
  result.device_bytes = runtime.backend().reserved_bytes();
  const auto tokens = static_cast<double>(result.own_tokens);
  result.least_seconds = std::max({result.cost.training.total() * tokens / limits.flops_per_second,
                                   result.cost.exponentials * tokens / limits.exponentials_per_second,
                                   result.cost.bytes / limits.bytes_per_second});
  return result;
}

}  // namespace

BenchResult bench_training(const BenchCase& bench, const MachineLimits& limits, Runtime& runtime, std::int64_t steps) {
  reset_peak_resident_bytes();
  auto rehearsal = std::make_unique<Rehearsal>(bench, runtime);
  std::optional<BenchResult> result;
  outlive_transfers(rehearsal, runtime.ranks(),
                    [&] { result.emplace(rehearse(*rehearsal, bench, limits, runtime, steps)); });
  return std::move(*result);
}

BenchResult bench_ranks(BenchCase bench, const MachineLimits& limits, const RankBenchSetting& setting,
                        Communicator& ranks) {
  const std::uint64_t seed = bench.config.training.seed;
  double alone = setting.alone_seconds;
  const std::int64_t split = split_for_ranks(bench.config, ranks.size());
  together(ranks, [&] {
    if (alone > 0 || ranks.alone() || !ranks.leads()) return;
    Runtime runtime(setting.device, setting.threads, seed);
    alone = bench_training(bench, limits, runtime, setting.steps).median_seconds();
  });
  bench.config.training.split = split;
  auto runtime = std::make_unique<Runtime>(setting.device, setting.threads, seed, &ranks);
  std::optional<BenchResult> result;
  outlive_transfers(runtime, runtime->ranks(),
                    [&] { result.emplace(bench_training(bench, limits, *runtime, setting.steps)); });
  result->rank_bench.alone_seconds = alone;
  return std::move(*result);
}

}  // namespace engram

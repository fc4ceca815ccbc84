#include "apps/studies/bench/side_by_side.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "apps/report/text_table.hpp"
#include "apps/studies/bench/block_timer.hpp"
#include "apps/studies/bench/median.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

std::int64_t memory_slots(const ModelOptions& model) {
  if (model.family == ModelFamily::recurrent || !model.memories().any()) return 0;
  const ProductKeyOptions& memories = model.memories();
  return std::ssize(memories.memory_layers(model.layers())) * memories.slots();
}

/// How many times as fast as the first one it is: the median of the ratios of the rounds.
double median_ratio(const SideBySide& first, const SideBySide& one) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < one.seconds.size(); ++round)
    ratios.push_back(first.seconds[round] / static_cast<double>(first.tokens) /
                     (one.seconds[round] / static_cast<double>(one.tokens)));
  return median_of(std::move(ratios));
}

}  // namespace

double SideBySide::median_seconds() const { return median_of(seconds); }

std::vector<SideBySide> bench_side_by_side(const std::vector<BenchCase>& cases, Runtime& runtime, std::int64_t rounds) {
  std::vector<std::unique_ptr<BenchModel>> models;
  std::vector<std::unique_ptr<BlockTimer>> timers;
  std::vector<SideBySide> results;
  for (const BenchCase& given : cases) {
    BenchCase bench = given;
    bench.config.training.extension = 0;
    const std::int64_t streams = bench.config.training.batch, block = bench.config.training.block;
    BenchModel& model = *models.emplace_back(
        std::make_unique<BenchModel>(bench, runtime.backend(), nullptr, BenchModel::For::inference));
    const PlacedModel placed = model.placed(runtime);
    timers.push_back(std::make_unique<BlockTimer>(model, placed, placed.frozen_past(streams, block), streams, block));
    results.push_back({.name = bench.name,
                       .parameters = model.store.count(),
                       .slots = memory_slots(bench.config.model),
                       .flops = model.cost(block).frozen_flops,
                       .tokens = streams * block,
                       .seconds = {}});
  }
  for (std::int64_t round = 0; round <= rounds; ++round)
    for (std::size_t i = 0; i < timers.size(); ++i) {
      const double seconds = timers[i]->run();
      if (round > 0) results[i].seconds.push_back(seconds);
    }
  return results;
}

std::string table_of(const std::vector<SideBySide>& results) {
  std::vector<TableColumn> columns{
      {"config", {}, true},         {"parameters", {}, false}, {"slots", {}, false},
      {"MFLOP a token", {}, false}, {"ms, median", {}, false}, {"least", {}, false},
      {"most", {}, false},          {"tokens/s", {}, false},   {"times the first", {}, false}};
  for (const SideBySide& one : results) {
    const auto [least, most] = std::ranges::minmax(one.seconds);
    const std::string cells[] = {one.name,
                                 fmt::format("{}", one.parameters),
                                 fmt::format("{}", one.slots),
                                 fmt::format("{:.1f}", one.flops / 1e6),
                                 fmt::format("{:.1f}", one.median_seconds() * 1e3),
                                 fmt::format("{:.1f}", least * 1e3),
                                 fmt::format("{:.1f}", most * 1e3),
                                 fmt::format("{:.0f}", one.tokens_per_second()),
                                 fmt::format("{:.3f}", median_ratio(results.front(), one))};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  return fmt::format("\nFrozen weights, {} rounds in turns; times the first: speed, median of the rounds' ratios\n",
                     results.front().seconds.size()) +
         aligned(columns);
}

nlohmann::json json_of(const std::vector<SideBySide>& results) {
  nlohmann::json list = nlohmann::json::array();
  for (const SideBySide& one : results) {
    const auto [least, most] = std::ranges::minmax(one.seconds);
    list.push_back({{"name", one.name},
                    {"parameters", one.parameters},
                    {"slots", one.slots},
                    {"flops_per_token", one.flops},
                    {"tokens", one.tokens},
                    {"rounds", one.seconds.size()},
                    {"milliseconds_median", one.median_seconds() * 1e3},
                    {"milliseconds_fastest", least * 1e3},
                    {"milliseconds_slowest", most * 1e3},
                    {"tokens_per_second", one.tokens_per_second()},
                    {"times_the_first", median_ratio(results.front(), one)}});
  }
  return list;
}

}  // namespace engram

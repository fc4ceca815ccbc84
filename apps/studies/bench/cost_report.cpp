#include "apps/studies/bench/cost_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "apps/studies/bench/cost_group_report.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

constexpr double kKilo = 1e3, kMicro = 1e-6;

/// "cuda/attention/attention_plain.cu:12" is "attention_plain.cu:12".
std::string short_place(const std::string& place) { return place.substr(place.rfind('/') + 1); }

std::string kilobytes(double bytes) { return bytes == 0 ? "-" : fmt::format("{:.1f}", bytes / kKilo); }
std::string number_text(std::int64_t number) { return number == 0 ? "-" : fmt::format("{}", number); }
std::string percent(double share, bool shown) { return shown ? fmt::format("{:.0f}", 100 * share) : "-"; }

std::string wavefronts_text(const LaunchCost& cost) {
  return cost.shared_reads.requests + cost.shared_writes.requests == 0
             ? "-"
             : fmt::format("{:.2f}", cost.wavefronts_per_request() / cost.least_wavefronts_per_request());
}

std::string counts_table(const CostResult& result) {
  std::string text =
      fmt::format("  {:<34} {:>8} {:>8} {:>9} {:>9} {:>5} {:>7} {:>6} {:>8} {:>7} {:>7}\n", "launched at", "launches",
                  "asked kB", "memory kB", "L2 kB", "coal%", "x banks", "lanes%", "barriers", "mma", "exp");
  for (const KernelCost& kernel : result.kernels) {
    text += fmt::format("  {}\n", kernel.kernel);
    for (const PlaceCost& place : kernel.places) {
      const LaunchCost& cost = place.cost;
      const auto asked = static_cast<double>(cost.reads.bytes + cost.writes.bytes);
      text += fmt::format("    {:<32} {:>8} {:>8} {:>9} {:>9} {:>5} {:>7} {:>6} {:>8} {:>7} {:>7}\n",
                          short_place(cost.place), cost.launches, kilobytes(asked),
                          kilobytes(static_cast<double>(cost.memory_bytes())),
                          kilobytes(static_cast<double>(cost.l2_bytes)),
                          percent(cost.coalescing(), cost.reads.sectors + cost.writes.sectors > 0),
                          wavefronts_text(cost), percent(cost.active_share(), cost.requests() > 0),
                          number_text(cost.barriers), number_text(cost.mma), number_text(cost.exponentials));
    }
  }
  return text;
}

std::string times_table(const CostResult& result) {
  const std::span<const CardLimits> cards = known_cards();
  std::string text = fmt::format("  {:<26} {:>5}", "least microseconds", "calls");
  for (const std::size_t card : result.cards)
    text += fmt::format(" {:>9} {:<7} {:>8}", cards[card].name, "by", "floor");
  text += '\n';
  std::vector<double> sums(cards.size()), floors(cards.size());
  for (const KernelCost& kernel : result.kernels) {
    text += fmt::format("  {:<26} {:>5}", kernel.kernel, kernel.calls);
    for (const std::size_t card : result.cards) {
      text += fmt::format(" {:>9.3f} {:<7} {:>8.3f}", kernel.seconds(card) / kMicro, name_of(kernel.bound(card)),
                          kernel.floors[card] / kMicro);
      sums[card] += kernel.seconds(card);
      floors[card] += kernel.floors[card];
    }
    text += '\n';
  }
  text += fmt::format("  {:<26} {:>5}", "all kernels", "");
  for (const std::size_t card : result.cards)
    text += fmt::format(" {:>9.3f} {:<7} {:>8.3f}", sums[card] / kMicro, "", floors[card] / kMicro);
  return text + '\n';
}

double each_of(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string item(const char* what, const std::string& text) { return fmt::format("    {:<24} {}\n", what, text); }

std::string global_line(const GlobalAccessCost& cost, std::int64_t distinct) {
  if (cost.requests == 0) return "none";
  return fmt::format(
      "{} requests of {:.1f} lanes, {:.1f} bytes a lane: {} bytes\n    {:<24} in {} sectors of 32 bytes, {:.2f} a "
      "request; {:.1f}% of their bytes are of use\n    {:<24} {} bytes of memory, each once",
      cost.requests, each_of(cost.lanes, cost.requests), each_of(cost.bytes, cost.lanes), cost.bytes, "", cost.sectors,
      each_of(cost.sectors, cost.requests), 100 * each_of(cost.used_bytes, 32 * cost.sectors), "", distinct);
}

std::string shared_line(const SharedAccessCost& cost) {
  if (cost.requests == 0) return "none";
  return fmt::format(
      "{} requests of {:.1f} lanes, {:.1f} bytes a lane\n    {:<24} {} wavefronts, {:.2f} a request; {} "
      "without bank conflicts",
      cost.requests, each_of(cost.lanes, cost.requests), each_of(cost.bytes, cost.lanes), "", cost.wavefronts,
      each_of(cost.wavefronts, cost.requests), cost.least_wavefronts);
}

nlohmann::json json_of(const GlobalAccessCost& cost) {
  return {{"requests", cost.requests},
          {"lanes", cost.lanes},
          {"bytes", cost.bytes},
          {"used_bytes", cost.used_bytes},
          {"sectors", cost.sectors}};
}
nlohmann::json json_of(const SharedAccessCost& cost) {
  return {{"requests", cost.requests},
          {"lanes", cost.lanes},
          {"bytes", cost.bytes},
          {"wavefronts", cost.wavefronts},
          {"wavefronts_without_conflicts", cost.least_wavefronts}};
}

nlohmann::json json_of(const PlaceCost& place, const std::vector<std::size_t>& cards) {
  const LaunchCost& cost = place.cost;
  nlohmann::json times = nlohmann::json::object();
  for (const std::size_t card : cards)
    times[std::string(known_cards()[card].name)] = {{"microseconds", place.times[card].seconds / kMicro},
                                                    {"bound", name_of(place.times[card].bound)}};
  return {{"place", cost.place},
          {"launches", cost.launches},
          {"blocks", cost.blocks},
          {"warps", cost.warps},
          {"dynamic_shared_bytes", cost.most_shared_bytes},
          {"global_reads", json_of(cost.reads)},
          {"global_writes", json_of(cost.writes)},
          {"shared_reads", json_of(cost.shared_reads)},
          {"shared_writes", json_of(cost.shared_writes)},
          {"atomic_requests", cost.atomics},
          {"distinct_read_bytes", cost.distinct_read_bytes},
          {"distinct_written_bytes", cost.distinct_written_bytes},
          {"l2_bytes", cost.l2_bytes},
          {"local_bytes", cost.local_bytes},
          {"coalescing", cost.coalescing()},
          {"active_lanes", cost.active_share()},
          {"barriers", cost.barriers},
          {"collectives", cost.collectives},
          {"mma", cost.mma},
          {"exponentials", cost.exponentials},
          {"instructions", cost.instructions},
          {"product_flops", cost.product_flops},
          {"bf16_product_flops", cost.bf16_product_flops},
          {"least_time", times}};
}

}  // namespace

std::string table_of(const BenchCase& bench, const CostResult& result) {
  return fmt::format("\n{}: one training step of {} tokens, {} parameters. Counted, not measured.\n", bench.name,
                     result.tokens, result.parameters) +
         counts_table(result) + '\n' + times_table(result);
}

std::string listing_of(const CostResult& result, const std::string& kernel) {
  const auto found = std::ranges::find(result.kernels, kernel, &KernelCost::kernel);
  if (found == result.kernels.end()) {
    std::string names;
    for (const KernelCost& one : result.kernels) names += (names.empty() ? "" : ", ") + one.kernel;
    throw UsageError(text("bench: --kernel must be one that ran, got '", kernel, "'\n  these did: ", names));
  }
  std::string text = fmt::format("\n{}, {} call{} a step. Counted, not measured.\n", kernel, found->calls,
                                 found->calls == 1 ? "" : "s");
  for (const PlaceCost& place : found->places) {
    const LaunchCost& cost = place.cost;
    text += fmt::format("  {}\n", cost.place);
    text += item("launches", fmt::format("{} of {:.4g} blocks of {:.4g} warps", cost.launches,
                                         each_of(cost.blocks, cost.launches), each_of(cost.warps, cost.blocks)));
    text += item("global reads", global_line(cost.reads, cost.distinct_read_bytes));
    text += item("global writes", global_line(cost.writes, cost.distinct_written_bytes));
    text += item("L2 cache", fmt::format("{} bytes, if a block reads nothing twice", cost.l2_bytes));
    text += item("shared reads", shared_line(cost.shared_reads));
    text += item("shared writes", shared_line(cost.shared_writes));
    if (cost.most_shared_bytes > 0)
      text += item("dynamic shared memory", fmt::format("{} bytes a block", cost.most_shared_bytes));
    if (cost.atomics > 0) text += item("atomic operations", fmt::format("{} requests of those writes", cost.atomics));
    if (cost.local_bytes > 0) text += item("local memory", fmt::format("{} bytes", cost.local_bytes));
    text += item("lanes", fmt::format("{:.1f}% take part in an access", 100 * cost.active_share()));
    text += item("a warp's instructions", fmt::format("{} barriers, {} shuffles and votes, {} products (mma)",
                                                      cost.barriers, cost.collectives, cost.mma));
    text += item("exponentials", fmt::format("{}", cost.exponentials));
    if (cost.instructions > 0)
      text += item("instructions of warps", fmt::format("{:.0f}, as nvcc makes them", cost.instructions));
    if (cost.product_flops + cost.bf16_product_flops > 0)
      text +=
          item("library products", fmt::format("{:.0f} FLOPs, {:.0f} of bf16",
                                               cost.product_flops + cost.bf16_product_flops, cost.bf16_product_flops));
    for (const std::size_t card : result.cards)
      text += item(card == result.cards.front() ? "least time" : "",
                   fmt::format("{:.3f} us on {}, by {}", place.times[card].seconds / kMicro, known_cards()[card].name,
                               name_of(place.times[card].bound)));
  }
  for (const std::size_t card : result.cards)
    text += fmt::format("  {:<26} {:.3f} us on {}, of {:.3f} us\n",
                        card == result.cards.front() ? "floor by the formulas" : "", found->floors[card] / kMicro,
                        known_cards()[card].name, found->seconds(card) / kMicro);
  return text;
}

nlohmann::json json_of(const BenchCase& bench, const CostResult& result) {
  nlohmann::json kernels = nlohmann::json::array();
  for (const KernelCost& kernel : result.kernels) {
    nlohmann::json places = nlohmann::json::array(), times = nlohmann::json::object();
    for (const PlaceCost& place : kernel.places) places.push_back(json_of(place, result.cards));
    for (const std::size_t card : result.cards)
      times[std::string(known_cards()[card].name)] = {{"microseconds", kernel.seconds(card) / kMicro},
                                                      {"bound", name_of(kernel.bound(card))},
                                                      {"microseconds_floor", kernel.floors[card] / kMicro}};
    kernels.push_back({{"kernel", kernel.kernel}, {"calls", kernel.calls}, {"least_time", times}, {"places", places}});
  }
  return {{"name", bench.name},
          {"tokens", result.tokens},
          {"parameters", result.parameters},
          {"flops", result.flops},
          {"device_bytes", result.device_bytes},
          {"blocks_of_a_launch", result.blocks},
          {"groups", json_of_groups(result)},
          {"kernels", kernels}};
}

}  // namespace engram

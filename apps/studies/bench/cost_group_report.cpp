#include "apps/studies/bench/cost_group_report.hpp"

#include <fmt/format.h>

#include "core/files/json.hpp"

namespace engram {
namespace {

constexpr double kMilli = 1e-3;

/// Of the card's products of bf16 matrices, while the step takes so long.
double product_share(const CostResult& result, const CardLimits& card, double seconds) {
  return seconds > 0 ? result.flops / (seconds * card.bf16_flops_per_second) : 0;
}

}  // namespace

std::string group_table_of(const BenchCase& bench, const CostResult& result) {
  const std::span<const CardLimits> cards = known_cards();
  const RunConfig& config = bench.config;
  std::string text = fmt::format(
      "\n{}: one training step of {} tokens ({} x {}, split {}), {} parameters.\n"
      "Counted, not measured: milliseconds at least, {}; {:.1f} GB of the card.\n",
      bench.name, result.tokens, config.training.batch, config.training.block, config.training.split, result.parameters,
      result.blocks == 0 ? "of all blocks" : fmt::format("from {} blocks of a launch", result.blocks),
      static_cast<double>(result.device_bytes) / 1e9);
  text += fmt::format("  {:<18} {:>8}", "", "launches");
  for (const std::size_t card : result.cards)
    text += fmt::format(" {:>10} {:>8} {:<7}", cards[card].name, "floor", "by");
  text += '\n';
  const std::vector<GroupCost> groups = groups_of(result);
  for (const GroupCost& group : groups) {
    text += fmt::format("  {:<18} {:>8}", group.name, group.launches);
    for (const std::size_t card : result.cards) {
      const GroupCost::OnCard& on = group.cards[card];
      text += fmt::format(" {:>10.3f} {:>8.3f} {:<7}", on.seconds / kMilli, on.floor / kMilli, name_of(on.bound));
    }
    text += '\n';
  }
  text += fmt::format("  {:<18} {:>8}", "of product rate", "");
  for (const std::size_t card : result.cards) {
    const GroupCost::OnCard& all = groups.back().cards[card];
    text += fmt::format(" {:>9.1f}% {:>7.1f}% {:<7}", 100 * product_share(result, cards[card], all.seconds),
                        100 * product_share(result, cards[card], all.floor), "");
  }
  text.erase(text.find_last_not_of(' ') + 1);
  return text + '\n';
}

nlohmann::json json_of_groups(const CostResult& result) {
  nlohmann::json list = nlohmann::json::array();
  for (const GroupCost& group : groups_of(result)) {
    nlohmann::json cards = nlohmann::json::object();
    for (const std::size_t card : result.cards)
      cards[std::string(known_cards()[card].name)] = {{"milliseconds", group.cards[card].seconds / kMilli},
                                                      {"milliseconds_floor", group.cards[card].floor / kMilli},
                                                      {"bound", name_of(group.cards[card].bound)}};
    list.push_back({{"group", group.name}, {"launches", group.launches}, {"cards", cards}});
  }
  return list;
}

}  // namespace engram

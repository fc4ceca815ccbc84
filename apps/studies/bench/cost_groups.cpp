#include "apps/studies/bench/cost_groups.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace engram {
namespace {

struct Group {
  std::string_view name;
  std::vector<std::string_view> kernels;  // names, or their beginnings where an underscore ends them
};

/// The first that fits.
const std::vector<Group>& all_groups() {
  static const std::vector<Group> groups{
      {"attention forward", {"attention_forward"}},
      {"attention backward", {"attention_backward"}},
      {"past", {"project_past_", "append_past", "shift_cache"}},
      {"recurrence", {"recurrence_", "quasi_recurrence_"}},
      {"windows", {"window_", "delayed_slices_"}},
      {"products", {"matmul"}},
      {"rounding", {}},
      {"norms", {"layer_norm_", "rms_norm_", "batch_norm_"}},
      {"product keys", {"product_key_", "weighted_rows_"}},
      {"tables",
       {"gather_rows", "scatter_rows", "order_row_uses", "sum_row_uses", "add_row_uses", "stamp_rows",
        "replace_wrong_ids", "adam_rows", "adagrad_rows", "row_squares", "row_squared_norm", "bring_rows_up_to_date",
        "advance_table_clock"}},
      {"losses", {"cross_entropy", "linear_cross_entropy", "sum_forward", "sum_backward"}},
      {"optimiser", {"segment_", "add_segment_", "adagrad", "adam", "sgd", "clip_scale", "clamp"}},
      {"copies", {"convert", "copy_runs", "fill", "accumulate", "(outside kernels)"}},
      {"elements", {}},
  };
  return groups;
}

bool fits(std::string_view kernel, std::string_view pattern) {
  return pattern.ends_with('_') ? kernel.starts_with(pattern) : kernel == pattern;
}

using BoundSeconds = std::map<CardTime::Bound, double>;

}  // namespace

std::string_view cost_group(std::string_view kernel, std::string_view place) {
  if (place.find("/rounded_product.cu:") != std::string_view::npos) return "rounding";
  for (const Group& group : all_groups())
    if (std::ranges::any_of(group.kernels, [&](std::string_view pattern) { return fits(kernel, pattern); }))
      return group.name;
  return "elements";
}

std::vector<GroupCost> groups_of(const CostResult& result) {
  const std::size_t cards = known_cards().size();
  std::vector<GroupCost> groups;
  for (const Group& group : all_groups())
    groups.push_back({.name = std::string(group.name), .launches = 0, .cards = {}});
  groups.push_back({.name = "all", .launches = 0, .cards = {}});
  std::vector<std::vector<BoundSeconds>> bounds(groups.size(), std::vector<BoundSeconds>(cards));
  for (GroupCost& group : groups) group.cards.resize(cards);
  const auto number_of = [&](std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(groups, name, &GroupCost::name) - groups.begin());
  };
  const std::size_t all = groups.size() - 1;
  for (const KernelCost& kernel : result.kernels) {
    const std::size_t own = number_of(cost_group(kernel.kernel, ""));
    for (const PlaceCost& place : kernel.places) {
      const std::size_t group = number_of(cost_group(kernel.kernel, place.cost.place));
      for (const std::size_t to : {group, all}) {
        groups[to].launches += place.cost.launches;
        for (std::size_t card = 0; card < cards; ++card) {
          groups[to].cards[card].seconds += place.times[card].seconds;
          bounds[to][card][place.times[card].bound] += place.times[card].seconds;
        }
      }
    }
    for (const std::size_t to : {own, all})
      for (std::size_t card = 0; card < cards; ++card) groups[to].cards[card].floor += kernel.floors[card];
  }
  for (std::size_t group = 0; group < groups.size(); ++group)
    for (std::size_t card = 0; card < cards; ++card)
      if (!bounds[group][card].empty())
        groups[group].cards[card].bound =
            std::ranges::max_element(bounds[group][card], {}, &BoundSeconds::value_type::second)->first;
  std::erase_if(groups, [](const GroupCost& group) { return group.launches == 0 && group.name != "all"; });
  return groups;
}

}  // namespace engram

#pragma once
/// What a step takes of a card, by what its kernels are for.

#include <string>
#include <string_view>
#include <vector>

#include "apps/studies/bench/cost_bench.hpp"

namespace engram {

/// "attention forward", "products", ... of launches from this place while this kernel ran.
std::string_view cost_group(std::string_view kernel, std::string_view place);

struct GroupCost {
  std::string name;
  std::int64_t launches = 0;
  /// On each of known_cards(): seconds at least, of these those that the formulas of the kernels give, and what bounds
  /// most of them.
  struct OnCard {
    double seconds = 0, floor = 0;
    CardTime::Bound bound = CardTime::Bound::nothing;
  };
  std::vector<OnCard> cards;
};

/// In the order of a step; those without launches are left out. The last is "all".
std::vector<GroupCost> groups_of(const CostResult& result);

}  // namespace engram

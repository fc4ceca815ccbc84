#include "apps/studies/product_keys/idle_rows.hpp"

#include <algorithm>

namespace engram {

IdleRows idle_rows(std::span<const std::int32_t> last_use, std::int64_t step) {
  IdleRows found{.all = static_cast<std::int64_t>(last_use.size()),
                 .never = std::ranges::count(last_use, std::int32_t{0}),
                 .longer = {}};
  for (std::int64_t steps = 10; steps < step; steps *= 10)
    found.longer.push_back(
        {steps, std::ranges::count_if(last_use, [&](std::int32_t at) { return step - at > steps; })});
  return found;
}

}  // namespace engram

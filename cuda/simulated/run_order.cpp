#include "cuda/simulated/run_order.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/philox.hpp"

namespace engram::simulated {

void make_order(const RunOptions& options, std::uint64_t stream, std::int64_t count, std::vector<std::int64_t>& order) {
  order.resize(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (options.order == RunOrder::reversed) std::ranges::reverse(order);
  if (options.order != RunOrder::shuffled) return;
  for (std::int64_t i = count - 1; i > 0; --i) {
    const auto draw = static_cast<std::uint64_t>(i);
    const PhiloxBlock random =
        philox({{static_cast<std::uint32_t>(draw), static_cast<std::uint32_t>(draw >> 32),
                 static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32)}},
               static_cast<std::uint32_t>(options.seed), static_cast<std::uint32_t>(options.seed >> 32));
    const std::uint64_t number = (std::uint64_t{random.word[0]} << 32) | random.word[1];
    std::swap(order[static_cast<std::size_t>(i)], order[number % (draw + 1)]);
  }
}

}  // namespace engram::simulated

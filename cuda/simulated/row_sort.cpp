#include "cuda/row_sort.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "cuda/simulated/backend.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {
namespace {

template <class Key>
void sort_on_host(Step& step, const RowSort<Key>& given) {
  if (!step.computes()) return;
  simulated::Engine& engine = simulated::engine_of(step.backend());
  const auto work = [&engine, sort = given] {
    if (engine.costs.idle()) return;
    if (engine.costs.wanted()) {  // everything is moved once at least
      const auto bytes = sort.count * static_cast<std::int64_t>(sizeof(Key) + sizeof(*sort.uses));
      LaunchCost cost{.place = "sort", .launches = 1};
      cost.distinct_read_bytes = cost.distinct_written_bytes = bytes;
      engine.costs.add(std::move(cost));
    }
    std::vector<std::int64_t> places(static_cast<std::size_t>(sort.count));
    std::iota(places.begin(), places.end(), std::int64_t{0});
    std::ranges::stable_sort(places, {}, [&sort](std::int64_t place) { return sort.keys[place]; });
    for (std::int64_t i = 0; i < sort.count; ++i) {
      const std::int64_t place = places[static_cast<std::size_t>(i)];
      sort.sorted_keys[i] = sort.keys[place];
      sort.sorted_uses[i] = sort.uses[place];
    }
  };
  engine.start(work, std::as_bytes(std::span(&given, 1)));
}

}  // namespace

void sort_by_row(Step& step, const RowSort<std::uint32_t>& sort) { sort_on_host(step, sort); }
void sort_by_row(Step& step, const RowSort<std::uint64_t>& sort) { sort_on_host(step, sort); }

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

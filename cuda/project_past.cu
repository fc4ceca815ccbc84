#include <type_traits>

#include "core/kernels/past.hpp"
#include "cuda/elements.cuh"
#include "cuda/project_past_exact.cuh"
#include "cuda/project_past_rounded.cuh"

namespace engram::cuda::project_past_kernels {
namespace {

/// Adds up the shares of all heads' gradients, in order.
template <class C>
struct SumOfShares {
  const C* partial;
  PastShares shares;
  std::int64_t of_head;  // numbers of a head's gradient of one weight
  std::int64_t before;   // of the heads of earlier launches
  TargetElements<C> keys, values;

  template <int kWidth>
  __device__ void run(std::int64_t i) const {
    const std::int64_t head = i / (2 * of_head), place = i % (2 * of_head);
    const bool of_values = place >= of_head;
    const TargetElements<C>& to = of_values ? values : keys;
    if (to.data == nullptr) return;
    Pack<C, kWidth> sum{};
    const C* from = partial + shares.first[head] + place;
    for (int share = 0; share < shares.count[head]; ++share, from += 2 * of_head) {
      const Pack<C, kWidth> next = load<kWidth>(from);
      for (int j = 0; j < kWidth; ++j) sum.value[j] += next.value[j];
    }
    write_pack(to, before + head * of_head + place - (of_values ? of_head : 0), sum);
  }
};

/// Whether products are made on tensor cores. f64 is never rounded.
template <class T>
bool rounds(const Step& step) {
  return std::is_same_v<T, bf16> || (std::is_same_v<T, float> && step.products() == ProductPrecision::bf16);
}

std::int64_t tiles(std::int64_t rows, std::int64_t of_tile) { return (rows + of_tile - 1) / of_tile; }

template <class Tile, class T>
void deal_rows(PastCall<T>& call) {
  call.deal_blocks([&](int i) {
    return tiles(std::int64_t{call.streams} * call.window[i], Tile::kRows) * tiles(2 * call.depth, Tile::kColumns);
  });
}

void project_past_forward(Step& step, const Tensor& cache, const Tensor& key_weight, const Tensor& value_weight,
                          const HeadWindows& windows, Tensor& keys, Tensor& values) {
  dispatch_storage(keys.dtype(), "project_past", [&]<class T>() {
    for (int first = 0; first < windows.heads(); first += kMostPastHeads) {
      PastCall<T> call(cache, windows, keys.shape()[-1], first);
      call.weight[0] = key_weight.data<const T>();
      call.weight[1] = value_weight.data<const T>();
      call.y[0] = keys.data<T>();
      call.y[1] = values.data<T>();
      if (!rounds<T>(step)) {
        if constexpr (!std::is_same_v<T, bf16>) {
          deal_rows<ExactPast>(call);
          launch(step, {.blocks = call.blocks(), .threads = ExactPast::kThreads, .shared_bytes = ExactPast::kBytes<T>},
                 project_exact<T>, call);
        }
      } else if constexpr (!std::is_same_v<T, double>) {
        deal_rows<RoundedPast>(call);
        const bool in_packs = call.width % 8 == 0 && aligned_for_packs(call.cache, call.weight[0], call.weight[1]);
        launch(step,
               {.blocks = call.blocks(), .threads = RoundedPast::kThreads, .shared_bytes = RoundedPast::kForwardBytes},
               in_packs ? project_rounded<T, true> : project_rounded<T, false>, call);
      }
    }
  });
}

/// Shares of positions so that all heads together fill a large card a few times; by shapes alone. Returns how many
/// numbers their sums are.
template <class Tile, class T>
std::int64_t deal_shares(PastCall<T>& call, PastShares& shares) {
  constexpr std::int64_t kBlocks = 512, kLeastPositions = 256;
  const std::int64_t in_share = tiles(2 * call.depth, Tile::kRows) * tiles(call.width, Tile::kColumns);
  std::int64_t positions = 0;
  for (int i = 0; i < call.heads; ++i) positions += std::int64_t{call.streams} * call.used[i];
  const std::int64_t wanted = std::max(kLeastPositions, tiles(positions * in_share, kBlocks));
  shares.positions = static_cast<int>(tiles(wanted, Tile::kInner) * Tile::kInner);
  std::int64_t numbers = 0;
  call.deal_blocks([&](int i) {
    const std::int64_t count = tiles(std::int64_t{call.streams} * call.used[i], shares.positions);
    shares.count[i] = static_cast<int>(count);
    shares.first[i] = numbers;
    numbers += count * 2 * call.depth * call.width;
    return count * in_share;
  });
  return numbers;
}

void project_past_backward(Step& step, const Tensor& cache, const HeadWindows& windows, const Tensor& dkeys,
                           const Tensor& dvalues, const Target& dkey_weight, const Target& dvalue_weight) {
  const Tensor& given = dkeys ? dkeys : dvalues;
  dispatch_storage(given.dtype(), "project_past", [&]<class T>() {
    using C = Compute<T>;  // the weights are parameters: their gradients are not bf16
    for (int first = 0; first < windows.heads(); first += kMostPastHeads) {
      PastCall<T> call(cache, windows, given.shape()[-1], first);
      call.dy[0] = dkeys ? dkeys.data<const T>() : nullptr;
      call.dy[1] = dvalues ? dvalues.data<const T>() : nullptr;
      const bool exact = !rounds<T>(step);
      PastShares shares{};
      const std::int64_t numbers =
          exact ? deal_shares<ExactPast>(call, shares) : deal_shares<RoundedPast>(call, shares);
      const Workspace memory = step.workspace(sizeof(C) * static_cast<std::size_t>(numbers));
      C* const partial = memory.data<C>();
      if (exact) {
        if constexpr (!std::is_same_v<T, bf16>)
          launch(step, {.blocks = call.blocks(), .threads = ExactPast::kThreads, .shared_bytes = ExactPast::kBytes<T>},
                 past_gradient_exact<T>, call, shares, partial);
      } else if constexpr (!std::is_same_v<T, double>) {
        const bool in_packs =
            call.width % 8 == 0 && call.depth % 8 == 0 && aligned_for_packs(call.cache, call.dy[0], call.dy[1]);
        launch(step,
               {.blocks = call.blocks(), .threads = RoundedPast::kThreads, .shared_bytes = RoundedPast::kBackwardBytes},
               in_packs ? past_gradient_rounded<T, true> : past_gradient_rounded<T, false>, call, shares, partial);
      }
      const std::int64_t of_head = std::int64_t{call.depth} * call.width;
      const SumOfShares<C> sum{partial, shares, of_head, first * of_head, dkey_weight, dvalue_weight};
      const bool in_packs = of_head % kPackWidth<C> == 0 && aligned_for_packs(partial, sum.keys.data, sum.values.data);
      for_each_element<C>(step, call.heads * 2 * of_head, in_packs, sum);
    }
  });
}

const bool bound = kernels::project_past_forward.bind(kThisDevice, &project_past_forward) &&
                   kernels::project_past_backward.bind(kThisDevice, &project_past_backward);

}  // namespace
}  // namespace engram::cuda::project_past_kernels

#pragma once
/// One row of a table as the update rules see it, a warp for each: gradients in either form, and stores that round
/// stochastically where values are bf16.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/kernels/row_optimizer.hpp"
#include "core/rules/stochastic_rounding.hpp"
#include "cuda/row_sums.cuh"
#include "cuda/warp.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// The row that a warp has to do with.
__device__ __forceinline__ std::int64_t warp_number() {
  return static_cast<std::int64_t>(blockIdx.x) * kRowWarps + threadIdx.y;
}
/// A warp for each of `rows` rows, or none.
inline LaunchSize warps_for(std::int64_t rows) {
  return {.blocks = (rows + kRowWarps - 1) / kRowWarps, .threads = {kWarpLanes, kRowWarps}};
}

/// Workspace of `count` C, which may be none.
template <class C>
class Numbers {
 public:
  Numbers(Step& step, std::int64_t count)
      : memory_(step.workspace(static_cast<std::size_t>(std::max<std::int64_t>(1, count)) * sizeof(C))) {}
  C* data() const { return memory_.template data<C>(); }

 private:
  Workspace memory_;
};

/// The gradients of a step, as an argument of kernels.
template <class C>
struct GradientRows {
  const std::int64_t* rows = nullptr;
  const std::int64_t* count = nullptr;  ///< null: there are none
  std::int64_t capacity = 0, width = 0;
  const C* sums = nullptr;
  RowSums<C> summed = {};

  /// Columns column, ... of the gradient of row rows[u].
  template <int kWidth>
  __device__ Pack<C, kWidth> at(std::int64_t u, std::int64_t column) const {
    return sums != nullptr ? load<kWidth>(sums + u * width + column) : summed.template sum<kWidth>(u, column);
  }
  /// The number of a row's gradient; -1: it has none.
  __device__ std::int64_t find(std::int64_t row) const {
    if (count == nullptr) return -1;
    std::int64_t low = 0, high = count[0];
    while (low < high) {
      const std::int64_t middle = (low + high) / 2;
      if (rows[middle] < row)
        low = middle + 1;
      else
        high = middle;
    }
    return low < count[0] && rows[low] == row ? low : -1;
  }
};

/// Numbers of the workspace that read_gradients needs.
inline std::int64_t gradient_numbers(const RowGradients& gradients) {
  return gradients.order && !gradients.sums ? piece_numbers(gradients.uses) : 0;
}
/// May launch the sums of pieces, into `pieces`.
template <class C>
GradientRows<C> read_gradients(Step& step, const RowGradients& gradients, std::int64_t width, C* pieces) {
  GradientRows<C> read{.width = width};
  if (!gradients.order || gradients.order.rows.count() == 0) return read;
  read.rows = gradients.order.rows.data<const std::int64_t>();
  read.count = gradients.order.count.data<const std::int64_t>();
  read.capacity = gradients.order.rows.count();
  if (gradients.sums)
    read.sums = gradients.sums.data<const C>();
  else
    read.summed = prepare_row_sums<C>(step, gradients.uses, gradients.order, pieces);
  return read;
}
/// Whether a kernel may meet the gradients in packs of kWidth.
template <class C, int kWidth>
bool gradients_in_packs(const RowGradients& gradients, std::int64_t width) {
  if (width % kWidth != 0) return false;
  if (!gradients.order) return true;
  return aligned_for_packs(static_cast<const C*>(gradients.sums ? gradients.sums.raw() : gradients.uses.sources.raw()));
}

/// Whether rows of T may be stored in packs: of bf16 a pack has one block of random bits.
template <class T>
bool rows_in_packs(const TableColumns& columns) {
  const bool blocks = !std::is_same_v<T, bf16> || columns.begin % DropoutRule::kElementsPerBlock == 0;
  return blocks && columns.count % kPackWidth<T> == 0;
}

/// Stores columns column, ... of those that are held of a row; of bf16, rounded with the random bits of the row at this
/// step.
template <int kWidth, class T>
__device__ __forceinline__ void store_row(T* to, const Pack<Compute<T>, kWidth>& values, const RandomStream& random,
                                          std::uint64_t step, std::int64_t row, const TableColumns& columns,
                                          std::int64_t column) {
  if constexpr (std::is_same_v<T, bf16>) {
    constexpr int kInBlock = DropoutRule::kElementsPerBlock;
    static_assert(kWidth == 1 || kWidth == kInBlock, "one block of random bits for a pack");
    const RoundingBlocks blocks(columns);
    const PhiloxBlock bits = random.draw(blocks.block(row, column), step, 0);
    const int first = blocks.place(column);
    Pack<float, kWidth> rounded;  // exact in bf16, so that the store keeps it
    for (int j = 0; j < kWidth; ++j)
      rounded.value[j] =
          static_cast<float>(stochastically_rounded(values.value[j], DropoutRule::bits_of(bits, first + j)));
    store(to, rounded);
  } else {
    store(to, values);
  }
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

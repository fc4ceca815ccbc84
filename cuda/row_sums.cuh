#pragma once
/// The gradient of one row of a table, summed where it is used (core/rules/row_uses.hpp says how). The kernels that
/// keep all sums are in row_sums.cu and add alike. One thread could take long for a row that most results read, so the
/// pieces of rows with several are summed before, by a launch of their own.

#include <cstdint>

#include "core/rules/row_uses.hpp"
#include "core/step.hpp"
#include "cuda/vector_access.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// As an argument of kernels. C: float or double, the type of weights and sums.
template <class C>
struct RowSums {
  const std::int32_t* uses;
  const std::int32_t* starts;
  const C* weights;
  const void* sources;
  bool rounded;  ///< sources are bf16
  std::int32_t per_source;
  std::int64_t width, count, rows;  ///< numbers in a row, P, C
  C* pieces;                        ///< [place_of_piece < 2 windows, width]

  /// Where the sum of a piece lies that begins at place `begin` of the order. In a window of 256 places begins at most
  /// one row's first piece and one other piece, counting rows of several pieces only.
  __device__ static std::int64_t place_of_piece(std::int64_t begin, bool first) {
    return begin / kUsesOfPiece * 2 + (first ? 1 : 0);
  }

  template <int kWidth>
  __device__ __forceinline__ Pack<C, kWidth> source(std::int32_t use, std::int64_t column) const {
    const std::int64_t at = use / per_source * width + column;
    if constexpr (sizeof(C) == sizeof(float))
      if (rounded) return load<kWidth>(static_cast<const bf16*>(sources) + at);
    return load<kWidth>(static_cast<const C*>(sources) + at);
  }
  /// Of the uses from place `begin` to before `end`, at least one.
  template <int kWidth>
  __device__ Pack<C, kWidth> piece(std::int64_t begin, std::int64_t end, std::int64_t column) const {
    // From zero on, as sum_scaled_rows: a first product of its own could be rounded otherwise than there.
    Pack<C, kWidth> sum = {};
    for (std::int64_t i = begin; i < end; ++i) {
      const Pack<C, kWidth> more = source<kWidth>(uses[i], column);
      const C weight = weights[uses[i]];
      for (int j = 0; j < kWidth; ++j) sum.value[j] += weight * more.value[j];
    }
    return sum;
  }
  /// Columns column, ..., column + kWidth - 1 of the gradient of row order.rows[u].
  template <int kWidth>
  __device__ Pack<C, kWidth> sum(std::int64_t u, std::int64_t column) const {
    const std::int64_t begin = starts[u], end = starts[u + 1];
    if (end - begin <= kUsesOfPiece) return piece<kWidth>(begin, end, column);
    // Sums of whole subtrees wait, the largest first: a new piece is added to as many as end with it.
    Pack<C, kWidth> waiting[25];
    int count_waiting = 0;
    std::int64_t done = 0;
    for (std::int64_t at = begin; at < end; at += kUsesOfPiece) {
      Pack<C, kWidth> top = load<kWidth>(pieces + place_of_piece(at, at == begin) * width + column);
      ++done;
      for (std::int64_t level = done; level % 2 == 0; level /= 2) top = added(waiting[--count_waiting], top);
      waiting[count_waiting++] = top;
    }
    while (count_waiting > 1) {
      --count_waiting;
      waiting[count_waiting - 1] = added(waiting[count_waiting - 1], waiting[count_waiting]);
    }
    return waiting[0];
  }

 private:
  template <int kWidth>
  __device__ static Pack<C, kWidth> added(Pack<C, kWidth> left, const Pack<C, kWidth>& right) {
    for (int j = 0; j < kWidth; ++j) left.value[j] += right.value[j];
    return left;
  }
};

inline constexpr int kPieceThreads = 64;

/// Block (column block, window): the pieces that begin in the window, of rows with several.
template <int kWidth, class C>
__global__ void __launch_bounds__(kPieceThreads) sum_pieces(RowSums<C> sums) {
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.y) * kPieceThreads + threadIdx.x) * kWidth;
  if (column >= sums.width) return;
  const std::int64_t from = blockIdx.x * kUsesOfPiece;
  const std::int64_t last = (from + kUsesOfPiece < sums.count ? from + kUsesOfPiece : sums.count) - 1;
  // The row that the window begins in, and the one that it ends in: another long row cannot begin inside.
  std::int64_t met = -1;
  for (int side = 0; side < 2; ++side) {
    const std::int64_t place = side == 0 ? from : last;
    std::int64_t low = 0, high = sums.rows;  // starts[low] <= place < starts[high]
    while (high - low > 1) {
      const std::int64_t middle = (low + high) / 2;
      if (sums.starts[middle] <= place)
        low = middle;
      else
        high = middle;
    }
    if (low == met) continue;
    met = low;
    const std::int64_t begin = sums.starts[low], end = sums.starts[low + 1];
    if (end - begin <= kUsesOfPiece) continue;
    const std::int64_t skipped = begin < from ? (from - begin + kUsesOfPiece - 1) / kUsesOfPiece * kUsesOfPiece : 0;
    const std::int64_t at = begin + skipped;
    if (at > last || at >= end) continue;
    const std::int64_t until = at + kUsesOfPiece < end ? at + kUsesOfPiece : end;
    store(sums.pieces + sums.place_of_piece(at, at == begin) * sums.width + column,
          sums.template piece<kWidth>(at, until, column));
  }
}

/// Whether rows may be met in packs of 16 bytes of C.
template <class C>
bool in_packs(const RowUses& uses, std::int64_t width) {
  return width % kPackWidth<C> == 0 && aligned_for_packs(static_cast<const C*>(uses.sources.raw()));
}
/// The numbers in the workspace that RowSums::pieces needs; 0: no row can have several pieces.
inline std::int64_t piece_numbers(const RowUses& uses) {
  if (uses.count() <= kUsesOfPiece) return 0;
  return 2 * ((uses.count() + kUsesOfPiece - 1) / kUsesOfPiece) * uses.width();
}
/// Sums the pieces of rows with several into `pieces`, for kernels that are launched after it with the result.
template <class C>
RowSums<C> prepare_row_sums(Step& step, const RowUses& uses, const RowOrder& order, C* pieces) {
  const RowSums<C> sums{.uses = order.uses.data<const std::int32_t>(),
                        .starts = order.starts.data<const std::int32_t>(),
                        .weights = uses.weights.data<const C>(),
                        .sources = uses.sources.raw(),
                        .rounded = uses.sources.dtype() == DType::bf16,
                        .per_source = static_cast<std::int32_t>(uses.per_source()),
                        .width = uses.width(),
                        .count = uses.count(),
                        .rows = order.rows.count(),
                        .pieces = pieces};
  if (piece_numbers(uses) == 0) return sums;
  const std::int64_t windows = (sums.count + kUsesOfPiece - 1) / kUsesOfPiece;
  const auto start = [&](auto kernel, int pack) {
    const std::int64_t columns = std::int64_t{kPieceThreads} * pack;
    launch(step, {.blocks = {windows, (sums.width + columns - 1) / columns}, .threads = kPieceThreads}, kernel, sums);
  };
  if (in_packs<C>(uses, sums.width))
    start(&sum_pieces<kPackWidth<C>, C>, kPackWidth<C>);
  else
    start(&sum_pieces<1, C>, 1);
  return sums;
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

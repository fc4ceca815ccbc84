#pragma once
/// The gradient of one row of a table, summed where it is used (core/rules/row_uses.hpp says how). The kernels that
/// keep all sums are in row_sums.cpp and add with the same code.

#include <algorithm>
#include <bit>
#include <cstdint>

#include "core/dtype.hpp"
#include "core/rules/row_uses.hpp"

namespace engram::cpu {

/// The uses of an order, by place. D: the type of the sources' numbers.
template <class D>
struct UsedSources {
  using Element = D;
  const std::int32_t* uses;
  const Compute<D>* weights;
  const D* sources;
  std::int64_t per_source, width;

  const D* row(std::int64_t place) const { return sources + uses[place] / per_source * width; }
  Compute<D> weight(std::int64_t place) const { return weights[uses[place]]; }
};

/// sum[0, width) = the sum of the uses from place `begin` to before `end`, in order. Those up to place `last` will be
/// read next, and are asked for in advance. One copy of the arithmetic for the whole program: where a compiler joins a
/// product and a sum into one operation, and where it does not, is the same for all who sum.
template <class D>
void sum_uses(const UsedSources<D>& terms, std::int64_t begin, std::int64_t end, std::int64_t last, Compute<D>* sum);
extern template void sum_uses(const UsedSources<float>&, std::int64_t, std::int64_t, std::int64_t, float*);
extern template void sum_uses(const UsedSources<double>&, std::int64_t, std::int64_t, std::int64_t, double*);
extern template void sum_uses(const UsedSources<bf16>&, std::int64_t, std::int64_t, std::int64_t, float*);

/// C: float or double, the type of weights and sums.
template <class C>
class RowSums {
 public:
  RowSums(const RowUses& uses, const RowOrder& order)
      : uses_(order.uses.data<const std::int32_t>()),
        starts_(order.starts.data<const std::int32_t>()),
        weights_(uses.weights.data<const C>()),
        sources_(uses.sources.raw()),
        rounded_(uses.sources.dtype() == DType::bf16),
        count_(uses.count()),
        per_source_(static_cast<std::int32_t>(uses.per_source())),
        width_(uses.width()),
        levels_(std::bit_width(static_cast<std::uint64_t>(uses.count() / kUsesOfPiece)) + 1) {}

  /// How many C sum() needs as scratch memory.
  std::int64_t scratch() const { return levels_ * width_; }

  /// sum[0 .. width) = the gradient of row order.rows[u]. Asks for the sources of the uses that come next.
  void sum(std::int64_t u, C* sum, C* scratch) const {
    const std::int64_t begin = starts_[u], end = starts_[u + 1];
    if (end - begin <= kUsesOfPiece) {
      piece(begin, end, sum);
      return;
    }
    // Sums of whole subtrees wait in scratch, the largest first: a new piece is added to as many as end with it.
    int waiting = 0;
    std::int64_t pieces = 0;
    for (std::int64_t at = begin; at < end; at += kUsesOfPiece) {
      C* top = scratch + waiting++ * width_;
      piece(at, std::min(end, at + kUsesOfPiece), top);
      ++pieces;
      for (std::int64_t level = pieces; level % 2 == 0; level /= 2) add_last(scratch, waiting);
    }
    while (waiting > 1) add_last(scratch, waiting);
    std::copy_n(scratch, width_, sum);
  }

 private:
  void piece(std::int64_t begin, std::int64_t end, C* sum) const {
    if constexpr (sizeof(C) == sizeof(float)) {
      if (rounded_) return piece_of<bf16>(begin, end, sum);
    }
    piece_of<C>(begin, end, sum);
  }
  template <class D>
  void piece_of(std::int64_t begin, std::int64_t end, C* sum) const {
    sum_uses(UsedSources<D>{uses_, weights_, static_cast<const D*>(sources_), per_source_, width_}, begin, end,
             count_ - 1, sum);
  }
  void add_last(C* scratch, int& waiting) const {
    --waiting;
    C* to = scratch + (waiting - 1) * width_;
    const C* from = scratch + waiting * width_;
    for (std::int64_t c = 0; c < width_; ++c) to[c] += from[c];
  }

  const std::int32_t* uses_;
  const std::int32_t* starts_;
  const C* weights_;
  const void* sources_;
  bool rounded_;
  std::int64_t count_;
  std::int32_t per_source_;
  std::int64_t width_;
  std::int64_t levels_;
};

}  // namespace engram::cpu

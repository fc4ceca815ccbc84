#pragma once
/// Gradients of a table's rows. A lookup that reads A rows of a table per result touches few of its rows, so the
/// gradient is kept as the list of what was read, not as a tensor of the table's size. Row ids take 64 bits
/// everywhere. Source: [product-key 2.1 to 2.3].

#include <cstdint>

#include "core/tensor.hpp"

namespace engram {

/// The numbers of uses take 32 bits in an order.
inline constexpr std::int64_t kMostRowUses = 0x7fffffff;
/// How the uses of a row are summed, everywhere, so that all get the same bits ([product-key 2.3]): in order, in pieces
/// of so many; the pieces' sums are added by a fixed tree: neighbours in pairs, level by level, a last one without a
/// partner going up as it is.
inline constexpr std::int64_t kUsesOfPiece = 256;

/// What was read, with P = R A uses: use p adds weights[p] sources[p / A, :] to the gradient of row ids[p]. A row may
/// be used several times, by one result too.
struct RowUses {
  Tensor ids;      ///< [R, A] i64, in [0, rows of the table)
  Tensor weights;  ///< [R, A] f32 or f64
  Tensor sources;  ///< [R, width] f32 or f64, or bf16 beside f32 weights: gradients of the results

  explicit operator bool() const { return static_cast<bool>(ids); }
  std::int64_t count() const { return ids.count(); }           ///< P
  std::int64_t per_source() const { return ids.shape()[-1]; }  ///< A
  std::int64_t width() const { return sources.shape()[-1]; }   ///< numbers in a row
};

/// The uses in the order in which they are summed: by row, and those of a row as they come ([product-key 2.3]).
/// Built by kernels::order_row_uses. Capacity C = min(P, rows of the table); the number of distinct rows, U, stays on
/// the device.
struct RowOrder {
  Tensor uses;    ///< [P] i32: the numbers p, sorted by (ids[p], p)
  Tensor rows;    ///< [C] i64: the distinct ids, ascending; -1 from place U on
  Tensor starts;  ///< [C + 1] i32: row rows[u] has the uses from place starts[u] to before starts[u + 1]; P from U on
  Tensor count;   ///< [1] i64: U

  explicit operator bool() const { return static_cast<bool>(uses); }
};

/// For observers of kernels: the tensors of such an argument.
template <class List>
void collect_tensors(List& list, const RowUses& uses) {
  for (const Tensor* tensor : {&uses.ids, &uses.weights, &uses.sources}) list.push_back({tensor, false});
}
template <class List>
void collect_tensors(List& list, const RowOrder& order) {
  for (const Tensor* tensor : {&order.uses, &order.rows, &order.starts, &order.count}) list.push_back({tensor, false});
}

}  // namespace engram

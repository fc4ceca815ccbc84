#pragma once
/// Update rules of tables with gradients of rows. [product-key 2.4, 7.5]. Nothing of the table's size
/// is ever stored for a gradient. A table [rows, width] is f32, f64 or bf16; moments and sums are f32, or f64 beside
/// f64. New values of bf16 are rounded stochastically (core/rules/stochastic_rounding.hpp) with bits of the given
/// stream. Where several share a table's columns, `width` is what one of them holds, and `columns` says which these
/// are; what belongs to a row, not to an element, all have alike.

#include <cstdint>

#include "core/kernel.hpp"
#include "core/names.hpp"
#include "core/rules/adam_step.hpp"
#include "core/rules/row_uses.hpp"
#include "core/rules/table_clock.hpp"
#include "core/rules/table_columns.hpp"

namespace engram {

/// Which rows a step moves. These are not interchangeable at equal rates: after one gradient that comes late in
/// training, lazy moves a row by about 3 rates, row_step by 1, dense by 32.
enum class TableMode : std::uint8_t {
  dense,     ///< all: Adam as it is defined, where a row without a gradient has the gradient zero
  lazy,      ///< those with a gradient, bias-corrected with the number of all steps
  row_step,  ///< those with a gradient, bias-corrected with the number of the row's own steps
  deferred   ///< the results of dense at the cost of lazy: a row catches up when it is needed
};
constexpr auto names_of(TableMode) {
  return std::to_array<Named<TableMode>>({{TableMode::dense, "dense"},
                                          {TableMode::lazy, "lazy"},
                                          {TableMode::row_step, "row_step"},
                                          {TableMode::deferred, "deferred"}});
}

/// The gradient of a table's rows, in one of two forms with the same bits: summed, with `order` and `sums`, or as it
/// was read, with `uses` and `order`, and summed where it is used. All empty: no row has one.
struct RowGradients {
  RowUses uses;
  RowOrder order;
  Tensor sums;  ///< [C, width]: row u belongs to row order.rows[u] of the table
};
template <class List>
void collect_tensors(List& list, const RowGradients& gradients) {
  if (gradients.uses) collect_tensors(list, gradients.uses);
  if (gradients.order) collect_tensors(list, gradients.order);
  if (gradients.sums) list.push_back({&gradients.sums, false});
}

/// A table's learning rate: constant + share times the learning rate of the step's scalars.
struct TableRate {
  double constant = 1e-3;
  double share = 0;

  ENGRAM_HD constexpr double at(double of_step) const { return constant + share * of_step; }
};

/// The tensors of a table under Adam.
struct AdamTable {
  Tensor values;         ///< [rows, width]
  Tensor first_moment;   ///< [rows, width]
  Tensor second_moment;  ///< [rows, width]
  Tensor steps;  ///< [rows] i32; row_step: of the row; deferred: the step that it is up to date with; else empty
  TableColumns columns;
};
template <class List>
void collect_tensors(List& list, const AdamTable& table) {
  for (const Tensor* tensor : {&table.values, &table.first_moment, &table.second_moment, &table.steps})
    if (*tensor) list.push_back({tensor, true});
}

/// The tensors of a table under row-wise AdaGrad.
struct AdagradTable {
  Tensor values;   ///< [rows, width]
  Tensor row_sum;  ///< [rows]
  TableColumns columns;
};
template <class List>
void collect_tensors(List& list, const AdagradTable& table) {
  for (const Tensor* tensor : {&table.values, &table.row_sum}) list.push_back({tensor, true});
}

/// Random bits of rows that catch up are drawn from the stream of this operation beside that of the update.
inline constexpr std::uint32_t kCatchUpOperation = 0x40000000u;

namespace kernels {

/// squares[u] = the sum of the squares of gradient_scale[0] times the gradient of row order.rows[u], in double: over
/// the parts of the row, and these by the tree of sum_of_column_parts; 0 from place U on. The same bits for both forms.
/// There are gradients; `columns`: those that they are of. squares: [C] f64.
inline constinit Kernel<void(const RowGradients& gradients, const Tensor& gradient_scale, TableColumns columns,
                             Tensor& squares)>
    row_squares{"row_squares"};

/// squared_norm[0] = the sum of the squares of rows, in a fixed order; 0 where `squares` is empty. [1] f64.
inline constinit Kernel<void(const Tensor& squares, Tensor& squared_norm)> row_squared_norm{"row_squared_norm"};

struct RowAdamOptions {
  TableMode mode = TableMode::lazy;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;  ///< may be 0
  EpsilonAt epsilon_at = EpsilonAt::uncorrected;
  double weight_decay = 0;  ///< decoupled; of the rows that the mode moves
  TableRate rate;
};
/// Of every row that the mode moves, with g = gradient_scale[0] times its gradient and t = scalars.step + 1 (row_step:
/// the row's own count):
///   p -= lr weight_decay p;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;
///   p -= lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + epsilon)                                       uncorrected
///   p -= lr / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + epsilon)                                         corrected
/// An element with v = 0 does not move in the last line. gradient_scale: [1] f64, the clip factor.
/// Deferred: rows are brought up to date with the clock's step first, those with a gradient and those that are due
/// (TableClock::due); `clock` is empty in the other modes.
inline constinit Kernel<void(const RowGradients& gradients, const Tensor& gradient_scale, const Tensor& clock,
                             const RowAdamOptions& options, RandomStream random, AdamTable& table)>
    adam_rows{"adam_rows"};

/// Deferred: brings rows up to date with the clock's step: those in `ids` (i64, of any shape; a row may be there
/// several times), or all when it is empty. It leaves epsilon out.
inline constinit Kernel<void(const Tensor& ids, const Tensor& clock, const RowAdamOptions& options, RandomStream random,
                             AdamTable& table)>
    bring_rows_up_to_date{"bring_rows_up_to_date"};

/// Deferred: takes the step of the scalars into the clock, after the update of all tables: [TableClock::count()] f64,
/// zeros before the first. A step that does not follow the one before begins anew: all rows must be up to date then.
inline constinit Kernel<void(const RowAdamOptions& options, Tensor& clock)> advance_table_clock{"advance_table_clock"};

struct RowAdagradOptions {
  double epsilon = 1e-8;    ///< may be 0
  double weight_decay = 0;  ///< decoupled
  TableRate rate;
};
/// Of every row with a gradient g, scaled as above: p -= lr weight_decay p; G += mean of g^2 over the whole row;
/// p -= lr g / (sqrt(G) + epsilon), and no move where that is 0 / 0. AdaGrad (Duchi, Hazan, Singer, JMLR 12, 2011) with
/// one number per row, as embedding tables are trained: Mudigere et al., "Software-hardware co-design for fast and
/// scalable training of deep learning recommendation models" (ISCA 2022). `squares`: what row_squares gives of whole
/// rows; empty where the table has all columns: the same numbers are found on the way.
inline constinit Kernel<void(const RowGradients& gradients, const Tensor& squares, const Tensor& gradient_scale,
                             const RowAdagradOptions& options, RandomStream random, AdagradTable& table)>
    adagrad_rows{"adagrad_rows"};

}  // namespace kernels
}  // namespace engram

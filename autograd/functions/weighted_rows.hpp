#pragma once

#include "autograd/parameter.hpp"
#include "autograd/variable.hpp"
#include "core/files/mapped_table.hpp"

namespace engram {

/// y[r, :] = sum over j of weights[r, j] values[ids[r, j], :]: what a memory returns whose slots `ids` were selected.
/// values: [N, width], f32, f64 or bf16, a table with gradients of rows or anything else; ids: [R, A] i64 in [0, N),
/// several of a row may be equal; weights: [R, A], f64 beside f64 values, else f32. Result: [R, width], f64 or of the
/// step's activations. Throws ShapeError, DTypeError or DeviceError. An id outside the table throws Error; a device
/// that works behind the host writes 0 in its place, into ids, and reports it (check_row_ids).
///
/// The gradient of a table with gradients of rows is one more part of it; another one is summed into a tensor of the
/// table's size, by the same kernel in the same order. [product-key 1.1, 2.1 to 2.3].
Variable weighted_rows(const Variable& values, const Tensor& ids, const Variable& weights);

/// The sums, to the bit the same, of a table in a mapped file, on an inference tape of the CPU; throws Error on one of
/// training. MappedTable::read_ahead should have been told the ids as soon as they were known.
Variable weighted_rows(const MappedTable& table, const Tensor& ids, const Variable& weights);

/// The sums of a table with gradients of rows, wherever its values are: in memory, in a mapped file, or in columns that
/// ranks share. In training the rows are brought up to date first (Parameter::refresh_rows). Ranks call it together,
/// with equal shapes, and each runs it backwards as often as the others, in the same order: every rank gets what all
/// read, computes with its own columns, and gets the other columns of its results. The bits are those of one rank that
/// has the reads of all.
Variable weighted_rows(Tape& tape, Parameter& table, const Tensor& ids, const Variable& weights);

}  // namespace engram

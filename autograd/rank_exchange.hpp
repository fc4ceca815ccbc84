#pragma once
/// What ranks give each other of tensors of a step, which have the same shapes on all of them: rows that each has some
/// of, columns that each has some of, and sums. All ranks call these in the same order.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/communicator.hpp"
#include "core/step.hpp"

namespace engram {

/// Throws UsageError unless so many ranks can share the columns of a table of this width.
void check_shared_columns(std::string_view table, std::int64_t width, int ranks);

/// Adds up the parts of the ranks, which have one shape, by a tree: neighbours in pairs, level by level, a last one
/// without a partner going up as it is. The sum is where part `own` was; the other parts are used up.
void sum_by_tree(Step& step, std::vector<Tensor> parts, std::size_t own);

/// A small tensor becomes the sum over the ranks, by that tree, on all of them.
void gather_sum(Step& step, const Tensor& own, Communicator& ranks);

/// own: [n, ...] -> [R n, ...]: the rows of all R ranks, those of rank 0 first.
Tensor gathered_rows(Step& step, const Tensor& own, Communicator& ranks);

/// Each rank has some of the columns of all ranks' rows, [R n, width / R], and gets all columns of its own, [n, width].
Tensor own_rows(Step& step, const Tensor& columns, Communicator& ranks);

/// The way back: each rank has all columns of its own rows, [n, width], and gets its columns of all ranks' rows,
/// [R n, width / R].
Tensor own_columns(Step& step, const Tensor& rows, Communicator& ranks);

/// Each rank has a part of the sums of all ranks' rows, [R n, ...], and gets the whole sums of its own, [n, ...], by
/// the tree.
Tensor summed_rows(Step& step, const Tensor& parts, Communicator& ranks);

}  // namespace engram

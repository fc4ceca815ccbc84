#pragma once
/// Update rules of tables of which a step uses few rows: [product-key 2.4], row by row and step by step.
/// There is no deferred rule: it must give what the dense one gives.

#include <cstdint>
#include <vector>

#include "tests/reference/array64.hpp"

namespace engram::reference {

/// What a step adds up to, for every row of the table.
struct TableGradient {
  Array64 sums;               // [rows, width]
  std::vector<bool> touched;  // [rows]
};
/// Use p adds weights[p] sources[p / per_source] to row ids[p].
TableGradient table_gradient(std::int64_t rows, const std::vector<std::int64_t>& ids,
                             const std::vector<double>& weights, const Array64& sources);

enum class MovedRows { all, touched, touched_with_own_count };

struct TableAdamOptions {
  double rate;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  bool corrected_root = false;  // epsilon is added to sqrt(v); true: to the bias-corrected root
};
/// Values and moments are [rows, width]; `steps`, one per row, counts for touched_with_own_count. t = 1 at the first.
void table_adam(Array64& value, const TableGradient& gradient, Array64& first, Array64& second,
                std::vector<std::int64_t>& steps, std::int64_t t, MovedRows moved, const TableAdamOptions& options);

/// row_sum: one number per row.
void table_adagrad(Array64& value, const TableGradient& gradient, std::vector<double>& row_sum, double rate,
                   double epsilon, double weight_decay);

}  // namespace engram::reference

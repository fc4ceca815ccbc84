#pragma once
/// Plain definitions of the ordinary operations, forward only, as loops over single elements: the kernels' results
/// are compared with these, their derivatives with central differences. No broadcasting: shapes must match as said,
/// or std::invalid_argument is thrown. `rows` means all leading axes together, `[..., C]` any number of them.

#include <cstdint>
#include <vector>

#include "tests/reference/array64.hpp"

namespace engram::reference {

/// a + b; both of the same shape.
Array64 add(const Array64& a, const Array64& b);
/// b: of a's shape, or [..., 1].
Array64 multiply(const Array64& a, const Array64& b);
/// bias[i] added to element i of every row of x: [..., n].
Array64 add_bias(const Array64& x, const Array64& bias);
/// factor * x
Array64 scale(const Array64& x, double factor);
/// Sum of all elements, first to last.
double sum(const Array64& x);

/// max(x, 0)
Array64 relu(const Array64& x);
/// 0.5 x (1 + erf(x / sqrt 2)), not the tanh approximation.
Array64 gelu(const Array64& x);
Array64 tanh(const Array64& x);
/// 1 / (1 + exp(-x)), without overflow for large |x|.
Array64 sigmoid(const Array64& x);
Array64 silu(const Array64& x);

/// y = x W^T + bias; x [..., in], weight [out, in], bias [out] or not given; result [..., out].
Array64 linear(const Array64& x, const Array64& weight, const Array64& bias = {});

/// Products of matrices with equal leading axes: a [..., m, k] (or [..., k, m] when transposed), b [..., k, n] (or
/// [..., n, k]); result [..., m, n].
Array64 matmul(const Array64& a, const Array64& b, bool transpose_a = false, bool transpose_b = false);

/// Parts one after the other along `axis` (0-based); their other axes must be equal.
Array64 concat(const std::vector<Array64>& parts, int axis);
/// Indices begin (included) to end (excluded) of `axis`.
Array64 slice(const Array64& x, int axis, std::int64_t begin, std::int64_t end);

/// exp(x - max) / sum over the last axis.
Array64 softmax(const Array64& x);

struct CrossEntropy {
  double loss;       // sum over rows of row_weight * row_loss
  Array64 row_loss;  // [rows], in nats: -log softmax(logits)[target]
};
/// logits [..., V]; one target in [0, V) and one weight per row. A row of weight 0 (padding) adds nothing to the loss,
/// even when its own loss is infinite.
CrossEntropy cross_entropy(const Array64& logits, const std::vector<std::int64_t>& targets,
                           const std::vector<double>& row_weights);

struct LayerNorm {
  Array64 sum;         // x + residual, or x when there is none
  Array64 normalised;  // gain * (sum - mean) / sqrt(variance + epsilon) + bias
};
/// x and residual [..., C] (residual may be not given), gain and bias [C]; mean and biased variance over the last axis.
LayerNorm layer_norm(const Array64& x, const Array64& residual, const Array64& gain, const Array64& bias,
                     double epsilon = 1e-5);

/// Row ids[i] of table [V, C] for every i; result [ids, C].
Array64 embedding(const Array64& table, const std::vector<std::int64_t>& ids);

/// The product of a matrix [R, N] with `values` [N, width], where weights[r, j] is added to the matrix at r, ids[r, j].
/// ids, weights: [R, A]; result [R, width].
Array64 weighted_rows(const Array64& values, const Array64& ids, const Array64& weights);

}  // namespace engram::reference

#pragma once
/// A vector added to every row. Beside bf16 rows, the vector and its gradient are f32.

#include "core/kernel.hpp"

namespace engram::kernels {

/// y[r, i] += bias[i], in place on an output that nobody else has seen yet. y: [..., n]; bias: [n].
inline constinit Kernel<void(const Tensor& bias, Tensor& y)> bias_forward{"bias_forward"};
/// dbias[i] (set or add) sum over r of dy[r, i]; rows are summed in chunks that depend on the row count only.
inline constinit Kernel<void(const Tensor& dy, const Target& dbias)> bias_backward{"bias_backward"};

}  // namespace engram::kernels

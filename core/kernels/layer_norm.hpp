#pragma once
/// Layer normalisation of a residual sum. Ba, Kiros, Hinton: "Layer Normalization" (2016), eq. 3, biased variance.
/// Beside bf16 rows, statistics, gain, bias and the gradients of those are f32; what is normalised is the rounded sum.

#include "core/kernel.hpp"

namespace engram::kernels {

/// sum = x + residual; y = gain (sum - mean) / sqrt(variance + epsilon) + bias, statistics over the last axis.
/// x, residual, sum, y: [..., n]; gain, bias: [n]; mean, reciprocal_deviation: [rows]. `residual` may be empty: then
/// `sum` is empty too and x itself is normalised.
inline constinit Kernel<void(const Tensor& x, const Tensor& residual, const Tensor& gain, const Tensor& bias,
                             double epsilon, Tensor& sum, Tensor& y, Tensor& mean, Tensor& reciprocal_deviation)>
    layer_norm_forward{"layer_norm_forward"};

/// Gradients of the above. With s the normalised input and g = gain dy:
///   dsum  = (g - mean(g) - s mean(g s)) * reciprocal_deviation (+ dsum_in, the gradient that reaches `sum` directly)
///   dgain = sum over rows of dy s;  dbias = sum over rows of dy  (chunks of rows that depend on the row count only)
/// Any of dx, dgain, dbias, dsum_in may be empty: not wanted, or none.
inline constinit Kernel<void(const Tensor& sum, const Tensor& gain, const Tensor& mean,
                             const Tensor& reciprocal_deviation, const Tensor& dy, const Tensor& dsum_in,
                             const Target& dx, const Target& dgain, const Target& dbias)>
    layer_norm_backward{"layer_norm_backward"};

}  // namespace engram::kernels

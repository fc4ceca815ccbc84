#pragma once
/// Batch normalisation of every feature over the rows. Ioffe, Szegedy: "Batch Normalization" (2015), algorithms 1 and
/// 2; running statistics and masked rows as in the [product-key 1.3]. Beside bf16 rows all
/// vectors (statistics, gain, bias, and the gradients of those) are f32.

#include <cstdint>

#include "core/kernel.hpp"

namespace engram::kernels {

/// Over the T rows that are not masked, with the biased variance:
///   y = gain (x - mean) / sqrt(variance + epsilon) + bias, zero in masked rows
///   running_mean = (1 - momentum) running_mean + momentum mean
///   running_variance = (1 - momentum) running_variance + momentum variance T / (T - 1)
/// x, y: [rows, n]; mask: i32 [rows], 0 for a row that is masked, or empty: none is; count: T, 0 or at least 2; all
/// others: [n]. mean and reciprocal_deviation are what the backward pass needs. With T = 0 they are of zeros, and the
/// running statistics stay.
inline constinit Kernel<void(const Tensor& x, const Tensor& mask, std::int64_t count, const Tensor& gain,
                             const Tensor& bias, double epsilon, double momentum, Tensor& running_mean,
                             Tensor& running_variance, Tensor& y, Tensor& mean, Tensor& reciprocal_deviation)>
    batch_norm_training{"batch_norm_training"};

/// y of the same with the running statistics in the place of the rows'; any number of rows.
inline constinit Kernel<void(const Tensor& x, const Tensor& mask, const Tensor& gain, const Tensor& bias,
                             const Tensor& running_mean, const Tensor& running_variance, double epsilon, Tensor& y)>
    batch_norm_inference{"batch_norm_inference"};

/// Gradients of the training form, through mean and variance. With s = (x - mean) reciprocal_deviation, all sums over
/// the rows that are not masked:
///   dgain = sum dy s;  dbias = sum dy
///   dx = gain reciprocal_deviation (dy - dbias / T - s dgain / T), zero in masked rows
/// Any of dx, dgain, dbias may be empty: not wanted.
inline constinit Kernel<void(const Tensor& x, const Tensor& mask, std::int64_t count, const Tensor& gain,
                             const Tensor& mean, const Tensor& reciprocal_deviation, const Tensor& dy, const Target& dx,
                             const Target& dgain, const Target& dbias)>
    batch_norm_backward{"batch_norm_backward"};

}  // namespace engram::kernels

#pragma once
/// Batch normalisation. Ioffe, Szegedy: "Batch Normalization" (2015); [product-key 1.3].

#include <cstdint>

#include "autograd/variable.hpp"

namespace engram {

/// Rows that take no part: padding.
struct RowMask {
  /// i32 [rows], 0 for a row that is masked, any other number for one that is not. Empty: none is masked, and `count`
  /// means nothing.
  Tensor included = {};
  /// How many rows are not masked. A device that works behind the host cannot be asked for it without a wait, so who
  /// makes the mask says it; a captured step is for one count.
  std::int64_t count = 0;
};

/// Statistics over all that was seen in training, for inference: buffers of a model, [n] each, f32 beside bf16.
struct RunningStatistics {
  Tensor mean, variance;
};

struct BatchNormRule {
  double epsilon = 1e-5;  ///< added to the variance
  double momentum = 0.1;  ///< share of a batch in new running statistics, from 0 to 1
};

/// gain (x - mean) / sqrt(variance + epsilon) + bias for every feature; zero in masked rows, which get no gradient. x:
/// [..., n], n >= 1, all leading axes together being the rows; gain, bias: [n], f32 beside bf16.
///
/// On a training tape: mean and biased variance of the rows that are not masked. Every such call updates the running
/// statistics in place, at once: running = (1 - momentum) running + momentum batch, with the unbiased variance. The
/// update is a kernel like any other, so a step that is repeated makes it again. Keeps x and two numbers per feature.
/// Throws ShapeError for one row that is not masked; with none the result is zero (or empty) and nothing is updated.
///
/// On an inference tape: the running statistics, which stay as they are; any number of rows.
///
/// Throws ShapeError or DTypeError for what does not fit, Error for a mask that has not `count` rows where it can be
/// read, on the CPU.
Variable batch_norm(const Variable& x, const Variable& gain, const Variable& bias, const RunningStatistics& running,
                    const RowMask& mask = {}, const BatchNormRule& rule = {});

}  // namespace engram

#pragma once
/// Plain definitions of batch, root mean square and length normalisation ([product-key 1.3]), as
/// loops over single elements; forward only.

#include "tests/reference/array64.hpp"

namespace engram::reference {

struct BatchNormRule {
  double epsilon = 1e-5;
  double momentum = 0.1;
};

struct BatchNorm {
  Array64 y;
  Array64 running_mean, running_variance;  // [C], after the call
};
/// In training. x [..., C]; gain, bias, running_mean, running_variance [C]; mask: a number per row, 0 for a masked one,
/// or not given. With no row that is not masked the running statistics stay.
BatchNorm batch_norm_training(const Array64& x, const Array64& gain, const Array64& bias, const Array64& running_mean,
                              const Array64& running_variance, const Array64& mask, const BatchNormRule& rule = {});
/// In inference.
Array64 batch_norm_inference(const Array64& x, const Array64& gain, const Array64& bias, const Array64& running_mean,
                             const Array64& running_variance, const Array64& mask, const BatchNormRule& rule = {});

/// x [..., C]; gain [C], or not given: 1.
Array64 rms_norm(const Array64& x, const Array64& gain, double epsilon = 1e-5);
/// Rows divided by their Euclidean length; rows of zeros stay.
Array64 l2_norm(const Array64& x);

}  // namespace engram::reference

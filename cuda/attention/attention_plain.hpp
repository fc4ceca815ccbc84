#pragma once
/// Attention in its plain form: library products and one kernel over rows per head and pass. It computes every column
/// of the past and of the block, not just the band, and needs memory for whole score matrices of one head at a time. It
/// serves every call; what is faster is compared with it (cuda/attention/fused_attention.hpp).

#include "core/kernels/attention.hpp"
#include "cuda/device_namespace.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// As kernels::attention_forward; 0 is kept of every place with a mask of 0, corners of a ramp too.
void plain_attention_forward(Step& step, const AttentionInputs& in, const AttentionOptions& options,
                             RandomStream random, Tensor& out, Tensor& lse, Tensor& kept);
/// As kernels::attention_backward.
void plain_attention_backward(Step& step, const AttentionInputs& in, const AttentionOptions& options,
                              RandomStream random, const Tensor& out, const Tensor& lse, const Tensor& dout,
                              const AttentionGradients& gradients);

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

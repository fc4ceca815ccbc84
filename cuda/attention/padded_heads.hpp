#pragma once
/// Fused attention (cuda/attention/fused_attention.hpp) for heads of any depth up to 128: every head's vectors are
/// copied to the next depth that the kernels are compiled for, filled up with zeros. Zeros change no score and no other
/// element of a result; what they would be given as gradient is not copied back.

#include "cuda/attention/fused_attention.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// As fused_attention_forward and fused_attention_backward, for depths that is_fused_depth does not know. They take
/// memory of the step for all vectors of heads, padded.
void padded_attention_forward(Step& step, const AttentionInputs& in, const AttentionOptions& options,
                              RandomStream random, Tensor& out, Tensor& lse);
void padded_attention_backward(Step& step, const AttentionInputs& in, const AttentionOptions& options,
                               RandomStream random, const Tensor& out, const Tensor& lse, const Tensor& dout,
                               const AttentionGradients& gradients);

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

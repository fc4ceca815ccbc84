/// Which form of attention serves a call. Kept weights are left alone by both: the backward pass always computes scores
/// again.

#include <cstdint>
#include <limits>

#include "cuda/attention_plain.hpp"
#include "cuda/fused_attention_depth.hpp"

namespace engram::cuda {
namespace {

template <class... Tensors>
bool fit_for_fused(const Tensors&... tensors) {
  const auto fits = [](const Tensor& tensor) {
    return !tensor || reinterpret_cast<std::uintptr_t>(tensor.raw()) % 16 == 0;
  };
  return (fits(tensors) && ...);
}

/// The fused form multiplies in bf16, so it serves steps that ask for that.
bool is_fused(const Step& step, const AttentionInputs& in, const AttentionOptions& options, const Tensor& out) {
  const Shape& shape = in.content_query.shape();
  const std::int64_t rows = shape[0] * options.heads * (shape[1] + options.max_distance + 128);
  return step.products() == ProductPrecision::bf16 && out.dtype() == DType::f32 && out.count() > 0 &&
         options.heads <= kMostFusedHeads && is_fused_depth(shape[2] / options.heads) &&
         rows < std::numeric_limits<std::int32_t>::max() &&
         fit_for_fused(in.content_query, in.position_query, in.past_keys, in.past_values, in.keys, in.values,
                       in.position_keys, in.slot_keys, in.slot_values, out);
}

void attention_forward(Step& step, const AttentionInputs& in, const AttentionOptions& options, RandomStream random,
                       Tensor& out, Tensor& lse, Tensor&) {
  if (is_fused(step, in, options, out))
    fused_attention_forward(step, in, options, random, out, lse);
  else
    plain_attention_forward(step, in, options, random, out, lse);
}

void attention_backward(Step& step, const AttentionInputs& in, const AttentionOptions& options, RandomStream random,
                        const Tensor& out, const Tensor& lse, const Tensor&, const Tensor& dout,
                        AttentionGradients& gradients) {
  const AttentionGradients& g = gradients;
  if (is_fused(step, in, options, out) &&
      fit_for_fused(dout, g.content_query.tensor, g.position_query.tensor, g.past_keys.tensor, g.past_values.tensor,
                    g.keys.tensor, g.values.tensor, g.position_keys.tensor, g.slot_keys.tensor, g.slot_values.tensor))
    fused_attention_backward(step, in, options, random, out, lse, dout, gradients);
  else
    plain_attention_backward(step, in, options, random, out, lse, dout, gradients);
}

const bool bound = kernels::attention_forward.bind(kThisDevice, &attention_forward) &&
                   kernels::attention_backward.bind(kThisDevice, &attention_backward);

}  // namespace
}  // namespace engram::cuda

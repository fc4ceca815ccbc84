/// Which form of attention serves a call. Kept weights are left alone by both: the backward pass always computes scores
/// again.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "core/kernels/copy.hpp"
#include "cuda/attention/attention_plain.hpp"
#include "cuda/attention/fused_attention_depth.hpp"
#include "cuda/attention/padded_heads.hpp"
#include "cuda/launch.hpp"

namespace engram::cuda::attention_kernels {
namespace {

/// The fused form reads and writes vector by vector, all but the span.
bool is_aligned(const Tensor& tensor) { return !tensor || reinterpret_cast<std::uintptr_t>(tensor.raw()) % 16 == 0; }
bool is_aligned(const Target& target) { return is_aligned(target.tensor); }
template <class T>
bool are_aligned(const AttentionOperands<T>& operands) {
  return std::ranges::all_of(kAttentionOperands<T>, [&](const AttentionOperand<T>& operand) {
    return operand.member == &AttentionOperands<T>::span || is_aligned(operands.*operand.member);
  });
}

/// The fused form multiplies in bf16, so it serves steps that ask for that, in what they store or in what they
/// multiply.
bool is_in_bf16(const Step& step, const Tensor& out) {
  return out.dtype() == DType::bf16 || (out.dtype() == DType::f32 && step.products() == ProductPrecision::bf16);
}

/// Why a call in bf16 takes the plain form all the same; empty: it does not. The fused form takes the largest score
/// before it is scaled, so that scales are positive. Smaller cards lack the shared memory for deep heads.
std::string why_plain(const Step& step, const AttentionInputs& in, const AttentionOptions& options, const Tensor& out) {
  const Shape& shape = in.content_query.shape();
  const std::int64_t depth = shape[2] / options.heads, fused_depth = fused_depth_for(depth);
  if (in.position_values) return "values have positions";
  if (has_query_spans(in)) return "every query has a span of its own";
  if (fused_depth == 0) return text("heads are ", depth, " deep, and its kernels are for 128 at most");
  if (options.heads > kMostFusedHeads)
    return text("there are ", options.heads, " heads, and its kernels are for ", kMostFusedHeads, " at most");
  if (!(options.score_scale > 0 && options.slot_score_scale > 0 && options.slot_value_scale > 0))
    return "scores or values are scaled by no positive number";
  const std::int64_t rows = shape[0] * options.heads * (shape[1] + options.max_distance + 128);
  // Of the rows that one stream and all heads have, more than any one tensor's.
  const std::int64_t slots = in.slot_keys ? in.slot_keys.shape()[1] : 0;
  const std::int64_t elements = (shape[1] + options.max_distance + 1 + slots) * options.heads * fused_depth;
  if (std::max(rows, elements) >= std::numeric_limits<std::int32_t>::max()) return "a tensor has 2^31 elements or more";
  if (!are_aligned(in) || !is_aligned(out)) return "tensors are not aligned to 16 bytes";
  const std::size_t bytes = std::max(fused_forward_shared_bytes(in, options), fused_backward_shared_bytes(in, options));
  if (bytes > most_shared_bytes(step))
    return text("heads of depth ", depth, " take ", bytes, " bytes of shared memory, and the card's blocks have ",
                most_shared_bytes(step));
  return {};
}

/// Whether the fused form serves it. What it would serve in bf16, but cannot, is counted.
bool is_fused(Step& step, const AttentionInputs& in, const AttentionOptions& options, const Tensor& out) {
  if (!is_in_bf16(step, out) || out.count() == 0) return false;
  const std::string reason = why_plain(step, in, options, out);
  if (!reason.empty()) step.count_plain_attention(reason);
  return reason.empty();
}
bool has_fused_depth(const AttentionInputs& in, const AttentionOptions& options) {
  return is_fused_depth(in.content_query.shape()[2] / options.heads);
}

/// The plain form computes with f32: what is bf16 is copied there and back.
Tensor widened(Step& step, const Tensor& x) {
  if (!x || x.dtype() != DType::bf16) return x;
  Tensor wide = step.empty(x.shape(), DType::f32);
  kernels::convert(step, x, wide);
  return wide;
}
AttentionInputs widened(Step& step, const AttentionInputs& in) {
  AttentionInputs wide = in;
  for (const auto& [name, member] : kAttentionOperands<Tensor>) wide.*member = widened(step, in.*member);
  return wide;
}

void attention_forward(Step& step, const AttentionInputs& in, const AttentionOptions& options, RandomStream random,
                       Tensor& out, Tensor& lse, Tensor& kept) {
  if (!kept && is_fused(step, in, options, out)) {
    (has_fused_depth(in, options) ? fused_attention_forward : padded_attention_forward)(step, in, options, random, out,
                                                                                        lse);
  } else if (out.dtype() == DType::bf16) {
    Tensor wide = step.empty(out.shape(), DType::f32);
    Tensor wide_kept = kept ? step.empty(kept.shape(), DType::f32) : Tensor();
    plain_attention_forward(step, widened(step, in), options, random, wide, lse, wide_kept);
    kernels::convert(step, wide, out);
    if (kept) kernels::convert(step, wide_kept, kept);
  } else {
    plain_attention_forward(step, in, options, random, out, lse, kept);
  }
}

void attention_backward(Step& step, const AttentionInputs& in, const AttentionOptions& options, RandomStream random,
                        const Tensor& out, const Tensor& lse, const Tensor&, const Tensor& dout,
                        const AttentionGradients& gradients) {
  if (is_fused(step, in, options, out) && is_aligned(dout) && are_aligned(gradients)) {
    (has_fused_depth(in, options) ? fused_attention_backward : padded_attention_backward)(step, in, options, random,
                                                                                          out, lse, dout, gradients);
    return;
  }
  AttentionGradients wide = gradients;
  const auto is_narrow = [](const Target& target) { return target && target.tensor.dtype() == DType::bf16; };
  for (const auto& [name, member] : kAttentionOperands<Target>) {
    const Target& target = gradients.*member;
    if (!is_narrow(target)) continue;
    Tensor& sums = (wide.*member).tensor = step.empty(target.tensor.shape(), DType::f32);
    if (target.write == Write::add) kernels::convert(step, target.tensor, sums);
  }
  plain_attention_backward(step, widened(step, in), options, random, widened(step, out), lse, widened(step, dout),
                           wide);
  for (const auto& [name, member] : kAttentionOperands<Target>) {
    Tensor narrow = (gradients.*member).tensor;
    if (is_narrow(gradients.*member)) kernels::convert(step, (wide.*member).tensor, narrow);
  }
}

const bool bound = kernels::attention_forward.bind(kThisDevice, &attention_forward) &&
                   kernels::attention_backward.bind(kThisDevice, &attention_backward);

}  // namespace
}  // namespace engram::cuda::attention_kernels

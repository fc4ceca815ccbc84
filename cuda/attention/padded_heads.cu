#include "cuda/attention/padded_heads.hpp"

#include "core/kernels/copy.hpp"
#include "core/kernels/fill.hpp"
#include "cuda/attention/fused_attention_depth.hpp"

namespace engram::cuda {
namespace {

/// Vectors of `depth` lie one after the other in every operand but the span, whatever its shape is; padded, they lie
/// `padded` elements apart.
struct Padding {
  Step& step;
  std::int64_t depth, padded;

  Padding(Step& of, const AttentionInputs& in, const AttentionOptions& options)
      : step(of), depth(in.content_query.shape()[2] / options.heads), padded(fused_depth_for(depth)) {}

  Tensor empty(const Tensor& narrow) const {
    const Shape& shape = narrow.shape();
    return step.empty(shape.with(-1, shape[-1] / depth * padded), narrow.dtype());
  }
  Tensor wide(const Tensor& narrow) const {
    if (!narrow) return narrow;
    Tensor to = empty(narrow);
    kernels::fill(step, to, 0);
    kernels::copy_runs(step, narrow, {0, depth}, {to, Write::set}, {0, padded}, narrow.count() / depth, depth);
    return to;
  }
  void narrow(const Tensor& from, const Target& to) const {
    kernels::copy_runs(step, from, {0, padded}, to, {0, depth}, to.tensor.count() / depth, depth);
  }
  AttentionInputs wide(const AttentionInputs& in) const {
    AttentionInputs all = in;
    for (const auto& [name, member] : kAttentionOperands<Tensor>)
      if (member != &AttentionOperands<Tensor>::span) all.*member = wide(in.*member);
    return all;
  }
};

}  // namespace

inline namespace ENGRAM_CUDA_DEVICE {

void padded_attention_forward(Step& step, const AttentionInputs& in, const AttentionOptions& options,
                              RandomStream random, Tensor& out, Tensor& lse) {
  const Padding padding(step, in, options);
  Tensor wide = padding.empty(out);
  fused_attention_forward(step, padding.wide(in), options, random, wide, lse);
  padding.narrow(wide, {out, Write::set});
}

void padded_attention_backward(Step& step, const AttentionInputs& in, const AttentionOptions& options,
                               RandomStream random, const Tensor& out, const Tensor& lse, const Tensor& dout,
                               const AttentionGradients& gradients) {
  const Padding padding(step, in, options);
  AttentionGradients wide = gradients;
  for (const auto& [name, member] : kAttentionOperands<Target>)
    if (gradients.*member && member != &AttentionOperands<Target>::span)
      wide.*member = {padding.empty((gradients.*member).tensor), Write::set};
  fused_attention_backward(step, padding.wide(in), options, random, padding.wide(out), lse, padding.wide(dout), wide);
  for (const auto& [name, member] : kAttentionOperands<Target>)
    if (gradients.*member && member != &AttentionOperands<Target>::span)
      padding.narrow((wide.*member).tensor, gradients.*member);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

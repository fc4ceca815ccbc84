#include "cuda/attention/fused_attention_depth.hpp"
#include "cuda/attention/fused_attention_output.cuh"
#include "cuda/attention/warpgroup_attention.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

std::size_t fused_forward_shared_bytes(const AttentionInputs& in, const AttentionOptions& options) {
  std::size_t bytes = 0;
  const Tensor& queries = in.content_query;
  dispatch_fused(queries.dtype(), fused_depth_for(queries.shape()[2] / options.heads), [&]<class T, int kDepth>() {
    const FusedCall<T> call(in, options, {});
    bytes = ForwardMemory<kDepth>::bytes(call.two_queries, call.positions);
  });
  return bytes;
}

void fused_attention_forward(Step& step, const AttentionInputs& in, const AttentionOptions& options,
                             RandomStream random, Tensor& out, Tensor& lse) {
  dispatch_fused(out.dtype(), out.shape()[2] / options.heads, [&]<class T, int kDepth>() {
    const FusedCall<T> call(in, options, random);
    if constexpr (kHasWarpgroupKernels<T, kDepth>)
      if (multiplies_by_warpgroups(step))
        return WarpgroupAttention{step, call}.forward(out.data<T>(), lse.data<float>());
    launch(step,
           {.blocks = std::int64_t{call.heads} * call.streams * call.tiles,
            .threads = kAttentionThreads,
            .shared_bytes = ForwardMemory<kDepth>::bytes(call.two_queries, call.positions)},
           forward_tile<T, kDepth, false>, call, out.data<T>(), lse.data<float>());
  });
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

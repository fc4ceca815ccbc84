#include "cuda/attention/fused_attention_output.cuh"
#include "cuda/attention/warpgroup_attention.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {
namespace {

constexpr int kDepth = kOperandColumns;

LaunchSize size_of(std::int64_t blocks, std::size_t shared_bytes) {
  return {.blocks = blocks, .threads = kAttentionThreads, .shared_bytes = shared_bytes};
}
std::int64_t query_blocks(const FusedCall<bf16>& call) { return std::int64_t{call.heads} * call.streams * call.tiles; }

}  // namespace

void WarpgroupAttention::forward(bf16* out, float* lse) const {
  launch(step, size_of(query_blocks(call), ForwardMemory<kDepth>::bytes(call.two_queries, call.positions)),
         forward_tile<bf16, kDepth, true>, call, out, lse);
}

void WarpgroupAttention::queries(const bf16* out, const bf16* dout, const QueryNumbers& numbers,
                                 const QueryGradients<bf16>& wanted) const {
  launch(step, size_of(query_blocks(call), query_gradient_bytes<bf16, kDepth>(call)),
         query_gradients<bf16, kDepth, true>, call, out, dout, numbers, wanted);
}

void WarpgroupAttention::keys(const HeadItems& items, const bf16* dout, const QueryNumbers& numbers,
                              const KeyGradients<bf16>& wanted) const {
  launch(step, size_of(items.first[call.heads], key_gradient_bytes<bf16, kDepth>(call)),
         key_gradients<bf16, kDepth, true>, call, items, dout, numbers, wanted);
}

void WarpgroupAttention::slots(const bf16* dout, const QueryNumbers& numbers, const Partials& dkeys,
                               const Partials& dvalues) const {
  launch(step,
         size_of(call.heads * tiles_of(call.persistent) * dkeys.shares[0],
                 GradientMemory<bf16, kDepth>::bytes(false, false)),
         slot_gradients<bf16, kDepth, true>, call, dout, numbers, dkeys, dvalues);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

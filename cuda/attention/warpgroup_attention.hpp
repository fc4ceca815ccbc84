#pragma once
/// The kernels of fused attention whose products with keys, values and slots are a warpgroup's (cuda/warpgroup.cuh),
/// for cards that have such products. Those with position keys are a warp's here too: each warp has distances of its
/// own. Everything else, and every number, is as in the kernels of cuda/attention/fused_attention.hpp: on the simulated
/// device both give the same bits.

#include <type_traits>

#include "cuda/attention/fused_attention_gradients.cuh"
#include "cuda/attention/fused_attention_keys.cuh"
#include "cuda/attention/fused_attention_queries.cuh"
#include "cuda/attention/fused_attention_slots.cuh"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// Heads of 64, whose rows fill a row of an operand, and tensors of bf16, as cards store them.
template <class T, int kDepth>
inline constexpr bool kHasWarpgroupKernels = std::is_same_v<T, bf16>&& kDepth == 64;

/// Launches of one call.
struct WarpgroupAttention {
  Step& step;
  const FusedCall<bf16>& call;

  /// out: bf16, as the queries; lse: of every query and head.
  void forward(bf16* out, float* lse) const;
  void queries(const bf16* out, const bf16* dout, const QueryNumbers& numbers,
               const QueryGradients<bf16>& wanted) const;
  void keys(const HeadItems& items, const bf16* dout, const QueryNumbers& numbers,
            const KeyGradients<bf16>& wanted) const;
  void slots(const bf16* dout, const QueryNumbers& numbers, const Partials& dkeys, const Partials& dvalues) const;
};

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

#pragma once
/// Attention in one pass over tiles: scores live in registers only, products run on tensor cores with operands rounded
/// to bf16, and what lies outside of a head's window is never computed. Numbers are those of the plain form
/// (cuda/attention/attention_plain.hpp) with ProductPrecision::bf16, to a few roundings.
///
/// A block of threads owns a tile of 64 rows of its result, 16 for each of four warps, and no other block writes them:
///
///   forward            a tile of queries   over keys, then persistent slots, with a running maximum and sum
///   gradient of queries                    the same way; also sums dout . out, and the spans' gradients
///   gradient of keys and values            a tile of keys over the queries that see them
///   gradient of slots                      a tile of slots over a share of all queries
///   gradient of position keys              a tile of distances over a share of all queries
///
/// Shares are cut by shape alone; their sums are added in order by a second launch.

#include "core/kernels/attention.hpp"
#include "cuda/device_namespace.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// Both serve calls with f32 or bf16 tensors that are aligned to 16 bytes, heads of a depth that is_fused_depth
/// (cuda/attention/fused_attention_depth.hpp) knows, and at most kMostFusedHeads of them, without position values, with
/// at most one span per head and with scales above 0; other depths: cuda/attention/padded_heads.hpp. Operands of
/// products are rounded to bf16 whatever the step says.
inline constexpr int kMostFusedHeads = 64;  ///< so that tables of heads fit into a kernel's arguments

/// The shared memory that a block of the forward and of the backward pass takes at most, bytes, at the depth that heads
/// are padded to. Not every card has as much for heads of depth 128.
std::size_t fused_forward_shared_bytes(const AttentionInputs& in, const AttentionOptions& options);
std::size_t fused_backward_shared_bytes(const AttentionInputs& in, const AttentionOptions& options);

/// As kernels::attention_forward; kept weights are left alone. Allocates nothing.
void fused_attention_forward(Step& step, const AttentionInputs& in, const AttentionOptions& options,
                             RandomStream random, Tensor& out, Tensor& lse);
/// As kernels::attention_backward. Takes workspace for one number per query and head, and for partial sums of slots
/// and position keys.
void fused_attention_backward(Step& step, const AttentionInputs& in, const AttentionOptions& options,
                              RandomStream random, const Tensor& out, const Tensor& lse, const Tensor& dout,
                              const AttentionGradients& gradients);

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

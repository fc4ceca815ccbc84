#pragma once
/// The depths of heads, and the kinds of tensors, that the fused kernels are compiled for.

#include "cuda/attention/fused_attention.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// The least of these depths that is not below `depth`; 0: there is none.
constexpr std::int64_t fused_depth_for(std::int64_t depth) {
  for (const std::int64_t of_kernels : {16, 32, 64, 128})
    if (depth <= of_kernels) return of_kernels;
  return 0;
}
constexpr bool is_fused_depth(std::int64_t depth) { return fused_depth_for(depth) == depth; }

/// Calls body.operator()<T, kDepth>() for tensors of f32 or bf16 and a depth of these.
template <class Body>
void dispatch_fused(DType dtype, std::int64_t depth, Body&& body) {
  const auto with_depth = [&]<class T>() {
    if (depth == 16) body.template operator()<T, 16>();
    if (depth == 32) body.template operator()<T, 32>();
    if (depth == 64) body.template operator()<T, 64>();
    if (depth == 128) body.template operator()<T, 128>();
  };
  if (dtype == DType::bf16)
    with_depth.template operator()<bf16>();
  else
    with_depth.template operator()<float>();
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

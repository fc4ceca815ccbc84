#pragma once
/// The depths of heads that the fused kernels are compiled for.

#include "cuda/fused_attention.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

constexpr bool is_fused_depth(std::int64_t depth) { return depth == 16 || depth == 32 || depth == 64 || depth == 128; }

/// Calls body.operator()<kDepth>() for a depth of these.
template <class Body>
void dispatch_fused_depth(std::int64_t depth, Body&& body) {
  if (depth == 16) body.template operator()<16>();
  if (depth == 32) body.template operator()<32>();
  if (depth == 64) body.template operator()<64>();
  if (depth == 128) body.template operator()<128>();
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

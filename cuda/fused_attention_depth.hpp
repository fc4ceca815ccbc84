#pragma once
/// The depths of heads that the fused kernels are compiled for.

#include "cuda/fused_attention.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// Calls body.operator()<kDepth>(); returns false for a depth without kernels.
template <class Body>
bool dispatch_fused_depth(std::int64_t depth, Body&& body) {
  const auto is = [&]<int kDepth>() {
    if (depth == kDepth) body.template operator()<kDepth>();
    return depth == kDepth;
  };
  return is.template operator()<16>() || is.template operator()<32>() || is.template operator()<64>() ||
         is.template operator()<128>();
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

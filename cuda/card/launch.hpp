#pragma once
/// launch() on a card; cuda/launch.hpp includes it.

#include <cuda_runtime.h>

#include "cuda/card/check.hpp"
#include "cuda/launch_size.hpp"

namespace engram::card {

/// The stream that keeps the order of a step's kernels and copies. Throws DeviceError for another kind of device.
cudaStream_t stream_of(Backend& backend);
/// The shared memory that a block can ask for. Throws likewise.
std::size_t shared_bytes_of(Backend& backend);
/// Whether the card, and this build's kernels, have products by warpgroups. Throws likewise.
bool has_warpgroup_products(Backend& backend);

/// What a failed launch throws. Kernels report late: the mistake may be that of one launched before.
[[noreturn]] inline void fail_launch(cudaError_t code, const cuda::LaunchedFrom& from) {
  (void)cudaGetLastError();
  throw DeviceError(text("launch: must succeed, got: ", cudaGetErrorString(code), " (", cudaGetErrorName(code),
                         ")\n  at ", from.file, ":", from.line, " or in a kernel before it"));
}

}  // namespace engram::card

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

inline std::size_t most_shared_bytes(const Step& step) { return card::shared_bytes_of(step.backend()); }
inline bool multiplies_by_warpgroups(const Step& step) { return card::has_warpgroup_products(step.backend()); }
inline int share_blocks(const Step&) { return kShareBlocks; }

template <class... Parameters, class... Arguments>
void launch(const LaunchedFrom& from, const LaunchSize& size, void (*kernel)(Parameters...), Arguments... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "every parameter of the kernel needs an argument");
  check_launch(from, size, most_shared_bytes(*from.step));
  if (size.is_empty() || !from.step->computes()) return;
  constexpr std::size_t kBytesWithoutAsking = 48 << 10;
  cudaError_t code = cudaSuccess;
  if (size.shared_bytes > kBytesWithoutAsking) {
    // Raised, never lowered: a captured launch before this one may need more.
    const int wanted = static_cast<int>(size.shared_bytes);
    cudaFuncAttributes has{};
    code = cudaFuncGetAttributes(&has, kernel);
    if (code == cudaSuccess && has.maxDynamicSharedSizeBytes < wanted)
      code = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, wanted);
  }
  if (code != cudaSuccess) card::fail_launch(code, from);
  const auto dimensions = [](const Extent& extent) {
    return dim3(static_cast<unsigned>(extent.x), static_cast<unsigned>(extent.y), static_cast<unsigned>(extent.z));
  };
  cudaLaunchConfig_t config{};
  config.gridDim = dimensions(size.blocks);
  config.blockDim = dimensions(size.threads);
  config.dynamicSmemBytes = size.shared_bytes;
  config.stream = card::stream_of(from.step->backend());
  code = cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
  if (code != cudaSuccess) card::fail_launch(code, from);
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

#pragma once
/// The one way to start a kernel, on a card and on the simulated device:
///
///   launch(step, {.blocks = rows, .threads = 256, .shared_bytes = 0}, row_softmax<T>, in, out, n);
///
/// Arguments are converted to the kernel's parameters, which are copied as bytes. Throws DeviceError for a size that no
/// card allows, and for what the device reports.

#include "cuda/launch_size.hpp"

#if defined(ENGRAM_CUDA_SIMULATED)
#include "cuda/simulated/launch.hpp"
#else

#include <cuda_runtime.h>

#include "cuda/check.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// The stream that keeps the order of a step's kernels and copies; the backend for cards defines it.
cudaStream_t stream_of(Step& step);

template <class... Parameters, class... Arguments>
void launch(const LaunchedFrom& from, const LaunchSize& size, void (*kernel)(Parameters...), Arguments... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments), "every parameter of the kernel needs an argument");
  check_launch(from, size);
  if (size.is_empty()) return;
  constexpr std::size_t kBytesWithoutAsking = 48 << 10;
  if (size.shared_bytes > kBytesWithoutAsking)
    check(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(size.shared_bytes)),
        "launch: shared memory");
  const auto dimensions = [](const Extent& extent) {
    return dim3(static_cast<unsigned>(extent.x), static_cast<unsigned>(extent.y), static_cast<unsigned>(extent.z));
  };
  cudaLaunchConfig_t config{};
  config.gridDim = dimensions(size.blocks);
  config.blockDim = dimensions(size.threads);
  config.dynamicSmemBytes = size.shared_bytes;
  config.stream = stream_of(*from.step);
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), "launch");
}

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

#endif

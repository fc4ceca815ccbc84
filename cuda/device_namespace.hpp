#pragma once
/// The same sources are compiled for two devices, for cards by nvcc and for the simulated one by the host compiler, and
/// one program may hold both. What a header of cuda/ defines for them therefore lies in an inline namespace of the
/// device: `inline namespace ENGRAM_CUDA_DEVICE { ... }` in engram::cuda. Sources bind their kernels for `kThisDevice`.

#include "core/device.hpp"

#if defined(ENGRAM_CUDA_SIMULATED)
#define ENGRAM_CUDA_DEVICE on_simulated
#else
#define ENGRAM_CUDA_DEVICE on_card
#endif

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

#if defined(ENGRAM_CUDA_SIMULATED)
inline constexpr DeviceKind kThisDevice = DeviceKind::simulated;
#else
inline constexpr DeviceKind kThisDevice = DeviceKind::cuda;
#endif

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

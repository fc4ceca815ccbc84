#pragma once
/// The one way to start a kernel, on a card and on the simulated device:
///
///   launch(step, {.blocks = rows, .threads = 256, .shared_bytes = 0}, row_softmax<T>, in, out, n);
///
/// Arguments are converted to the kernel's parameters, which are copied as bytes. Throws DeviceError for a size that no
/// card allows, and for what the device reports.
///
/// most_shared_bytes(step): the dynamic shared memory that a block can have there. multiplies_by_warpgroups(step): its
/// kernels can have products of cuda/warpgroup.cuh.

#if defined(ENGRAM_CUDA_SIMULATED)
#include "cuda/simulated/launch.hpp"
#else
#include "cuda/card/launch.hpp"
#endif

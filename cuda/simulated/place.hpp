#pragma once
/// Where a simulated thread stands in its launch: what threadIdx, blockIdx, blockDim and gridDim read.

#include <cstddef>

namespace engram::simulated {

/// Three sizes or three indices: CUDA's dim3 and uint3.
struct Index3 {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

struct Place {
  Index3 thread;
  Index3 block;
  Index3 block_size;
  Index3 grid_size;
};

/// The simulated thread that this OS thread runs at the moment. Thread-local because `threadIdx` has no argument that
/// could carry it; a block never changes its OS thread, so the compiler may keep the variable's address.
extern constinit thread_local const Place* current_place;

}  // namespace engram::simulated

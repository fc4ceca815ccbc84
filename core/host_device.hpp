#pragma once
/// Marks a function that both the host compiler and nvcc compile for their device.

#if defined(__CUDACC__)
#define ENGRAM_HD __host__ __device__
#else
#define ENGRAM_HD
#endif

#pragma once
/// Return codes of the CUDA runtime as exceptions.

#include <cuda_runtime_api.h>

#include "core/error.hpp"

namespace engram::card {

/// Throws DeviceError "what: TEXT (NAME)" for anything but success.
inline void check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  (void)cudaGetLastError();  // or the next call would report it once more
  throw DeviceError(text(what, ": must succeed, got: ", cudaGetErrorString(code), " (", cudaGetErrorName(code), ")"));
}

}  // namespace engram::card

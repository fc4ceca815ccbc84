#include "cuda/card/ranges.hpp"

#include <nvtx3/nvToolsExt.h>

#include <cstdlib>
#include <string>

#include "core/scope.hpp"

namespace engram::card {

void Ranges::before(const char* kernel) {
  const std::string path = Scope::path();
  nvtxRangePushA(path.empty() ? kernel : (path + "/" + kernel).c_str());
}

void Ranges::after(const char*) { nvtxRangePop(); }

bool profiler_listens() {
  return std::getenv("NVTX_INJECTION64_PATH") != nullptr || std::getenv("CUDA_INJECTION64_PATH") != nullptr;
}

}  // namespace engram::card

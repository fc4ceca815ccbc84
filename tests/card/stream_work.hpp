#pragma once
/// What tests hand to streams in place of kernels.

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "cuda/card/check.hpp"

namespace engram::harness {

/// The work is done in the stream's order, each time anew where it was captured.
inline void hand_over(cudaStream_t stream, std::function<void()> work) {
  // Captured work may be done again at any time: it stays.
  static std::vector<std::unique_ptr<std::function<void()>>> kept;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  kept.push_back(std::make_unique<std::function<void()>>(std::move(work)));
  card::check(cudaLaunchHostFunc(
                  stream, [](void* data) { (*static_cast<std::function<void()>*>(data))(); }, kept.back().get()),
              "work of a test");
}

inline void wait_for(cudaStream_t stream) { card::check(cudaStreamSynchronize(stream), "work of a test"); }

}  // namespace engram::harness

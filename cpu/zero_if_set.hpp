#pragma once
/// The beginning of a kernel that adds to its result in several places.

#include <algorithm>

#include "core/target.hpp"
#include "cpu/parallel.hpp"

namespace engram::cpu {

/// Zeros where the target says set. A target that is not wanted is left alone.
template <class T>
void zero_if_set(const Target& target) {
  if (!target || target.write == Write::add) return;
  T* const data = target.data<T>();
  // A tensor of no elements has no chunks.
  parallel_chunks(target.tensor.count(), kElementChunk, [=](std::int64_t begin, std::int64_t end) {
    std::fill(data + begin, data + end, T(0));  // NOLINT(clang-analyzer-core.NullPointerArithm)
  });
}

}  // namespace engram::cpu

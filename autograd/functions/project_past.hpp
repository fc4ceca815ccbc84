#pragma once

#include "autograd/variable.hpp"
#include "core/rules/head_windows.hpp"

namespace engram {

struct PastProjections {
  Variable keys, values;  ///< packed, [B windows.total, D]
};
/// Keys and values of cached hidden states, every head projecting only the positions that its window reaches; the
/// packed layout of HeadWindows. cache: [B, C, n], a constant: no gradient flows into it (truncated back-propagation);
/// weights: [heads D, n], of the same dtype as cache and results. Positions before the first cached one count as zero
/// vectors. Throws ShapeError or DTypeError.
PastProjections project_past(const Tensor& cache, const Variable& key_weight, const Variable& value_weight,
                             const HeadWindows& windows);

}  // namespace engram

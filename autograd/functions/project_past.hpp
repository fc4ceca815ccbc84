#pragma once

#include "autograd/variable.hpp"
#include "core/rules/head_windows.hpp"

namespace engram {

/// Keys (or values) of cached hidden states, every head projecting only the positions that its window reaches; the
/// packed layout of HeadWindows. cache: [B, C, n], a constant: no gradient flows into it (truncated back-propagation);
/// weight: [heads D, n], of the same dtype as cache and result: [B windows.total, D]. Positions before the first cached
/// one count as zero vectors.
Variable project_past(const Tensor& cache, const Variable& weight, const HeadWindows& windows);

}  // namespace engram

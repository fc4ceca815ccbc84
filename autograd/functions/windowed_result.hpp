#pragma once

#include "autograd/variable.hpp"

namespace engram {

/// What an attention over short windows returns.
struct WindowedResult {
  Variable context;  ///< [B, M, n]: the weighted sums of the values
  Tensor weights;  ///< [B, M, L]: the newest row's in the last column, 0 in columns without a row; f64 beside f64, else
                   ///< f32; a constant, to look at
};

}  // namespace engram

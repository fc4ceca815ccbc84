#pragma once

#include <cstdint>

#include "autograd/variable.hpp"

namespace engram {

/// What a product of bf16 matrices gives; others have a result like their operands.
enum class ProductResult : std::uint8_t {
  stored,  ///< bf16, rounded once more after the bias was added
  summed   ///< f32, as it was summed: for logits
};

/// y[..., :] = weight x[..., :] + bias. x: [..., in]; weight: [out, in], of x's dtype; bias: [out] or absent, f32
/// beside bf16; y: [..., out]. Throws ShapeError or DTypeError when they do not fit.
Variable linear(const Variable& x, const Variable& weight, const Variable& bias = {},
                ProductResult result = ProductResult::stored);

}  // namespace engram

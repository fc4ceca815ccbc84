#pragma once
/// What functions over short windows check of their arguments.

#include <string_view>

#include "autograd/variable.hpp"
#include "core/rules/window_rule.hpp"

namespace engram {

/// The rule of a window of `window` positions for extended rows [B, C + M, n] beside a block of M positions.
/// Throws ShapeError, DTypeError or DeviceError unless rows have three axes, `block` is [B, M] with M no larger than
/// theirs, `preceding` is [B, M] i32 on the same device, and the window is at least 1.
WindowRule window_rule(std::string_view op, std::string_view what, const Variable& rows, const Shape& block,
                       const Tensor& preceding, std::int64_t window);

/// Throws ShapeError unless values are rows [B, C + M, n], one beside every one of `keys`.
void check_value_rows(std::string_view op, const Variable& keys, const Variable& values);

}  // namespace engram

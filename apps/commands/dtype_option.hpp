#pragma once

#include <string_view>

#include "core/dtype.hpp"

namespace engram {

/// What --dtype of a command names: f32, f64 or, where it `takes_bf16`, bf16. Throws UsageError naming the command and
/// what it takes for everything else.
DType dtype_option(std::string_view command, std::string_view name, bool takes_bf16 = false);

}  // namespace engram

#pragma once

#include <string_view>

#include "core/error.hpp"
#include "core/random_stream.hpp"

namespace engram {

/// The rule of a rate that an operation was given. Throws Error unless 0 <= rate < 1 - 2^-17.
inline DropoutRule dropout_rule(std::string_view op, double rate) {
  if (!(rate >= 0 && rate < DropoutRule::kRateLimit))
    throw Error(text(op, ": the rate must be in [0, 1 - 2^-17), got ", rate));
  return DropoutRule(rate);
}

}  // namespace engram

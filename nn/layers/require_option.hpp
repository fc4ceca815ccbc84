#pragma once
/// How models refuse their options.

#include <string_view>

#include "core/error.hpp"

namespace engram {

/// Throws UsageError "model: <option> must be <rule>, got <value>" unless `valid`.
template <class T>
void require_option(bool valid, std::string_view option, std::string_view rule, const T& value) {
  if (!valid) throw UsageError(text("model: ", option, " must be ", rule, ", got ", value));
}

}  // namespace engram

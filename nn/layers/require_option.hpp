#pragma once
/// How models refuse their options.

#include <string_view>
#include <type_traits>

#include "core/error.hpp"
#include "nn/option_limits.hpp"

namespace engram {

/// Throws UsageError "model: <option> must be <rule>, got <value>" unless `valid`.
template <class T>
void require_option(bool valid, std::string_view option, std::string_view rule, const T& value) {
  if (!valid) throw UsageError(text("model: ", option, " must be ", rule, ", got ", value));
}

/// require_option() for a whole number or a number in [least, most]; `meaning` stands behind the bounds, as ", 0 for
/// none".
template <class T>
void require_within(std::string_view option, T value, std::type_identity_t<T> least, std::type_identity_t<T> most,
                    std::string_view meaning = "") {
  if (!(value >= least && value <= most))
    require_option(false, option, text("from ", least, " to ", most, meaning), value);
}

inline void require_dropout(std::string_view option, double rate) {
  require_option(option_limits::is_dropout(rate), option, option_limits::kDropoutRule, rate);
}

}  // namespace engram

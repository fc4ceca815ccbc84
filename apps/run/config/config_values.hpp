#pragma once
/// How the values of a configuration are written: TOML integers, floats, booleans, arrays of integers and of names with
/// wildcards, and strings for choices and texts.
/// Reading is strict: all of the text must be one value of the type, in its range, and finite.

#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "apps/data/text/utf8.hpp"
#include "apps/run/config/run_config.hpp"
#include "core/activation_precision.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"
#include "core/names.hpp"
#include "core/product_precision.hpp"
#include "nn/optim/optimizer.hpp"
#include "nn/optim/schedule.hpp"

namespace engram {

/// What a choice is one of. Of element types, those that the values of a table may be stored as.
template <class T>
constexpr auto choices() {
  if constexpr (std::is_same_v<T, DType>)
    return std::to_array<Named<DType>>({{DType::f32, "f32"}, {DType::bf16, "bf16"}});
  else
    return names_of(T{});
}

template <class T>
inline constexpr bool kIsList = std::is_same_v<T, std::vector<std::int64_t>>;
template <class T>
inline constexpr bool kIsNames = std::is_same_v<T, std::vector<std::string>>;
template <class T>
inline constexpr bool kIsText = std::is_same_v<T, std::string>;

/// What a value of type T must be, for messages: "an integer".
template <class T>
std::string value_rule() {
  if constexpr (std::is_same_v<T, bool>) {
    return "true or false";
  } else if constexpr (std::is_integral_v<T>) {
    return std::is_signed_v<T> ? "an integer" : "an integer from 0 on";
  } else if constexpr (std::is_floating_point_v<T>) {
    return "a number";
  } else if constexpr (kIsList<T>) {
    return "a list of integers";
  } else if constexpr (kIsNames<T>) {
    return "a list of names in quotes";
  } else if constexpr (kIsText<T>) {
    return "text in quotes (UTF-8)";
  } else {
    std::string names;
    for (const Named<T>& one : choices<T>()) names += text(names.empty() ? "\"" : ", \"", one.name, "\"");
    return "one of " + names;
  }
}

/// Integers with commas between them; brackets around them and spaces are allowed. The empty text is the empty list.
bool read_list(std::string_view written, std::vector<std::int64_t>& value);

/// Names, in quotes or not, with commas between them; brackets around them and spaces are allowed. A name has letters,
/// digits, dots, underscores and hyphens, and the wildcards * ? [ ] of shells. The empty text is the empty list.
bool read_names(std::string_view written, std::vector<std::string>& value);

/// Sets `value` and returns true when the text is one value of type T, else leaves it.
template <class T>
bool read_value(std::string_view written, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    if (written != "true" && written != "false") return false;
    value = written == "true";
    return true;
  } else if constexpr (std::is_arithmetic_v<T>) {
    if (written.starts_with('+')) written.remove_prefix(1);
    T parsed{};
    const char* end = written.data() + written.size();
    const auto [rest, error] = std::from_chars(written.data(), end, parsed);
    if (error != std::errc() || rest != end) return false;
    if constexpr (std::is_floating_point_v<T>)
      if (!std::isfinite(parsed)) return false;
    value = parsed;
    return true;
  } else if constexpr (kIsList<T>) {
    return read_list(written, value);
  } else if constexpr (kIsNames<T>) {
    return read_names(written, value);
  } else if constexpr (kIsText<T>) {
    if (data::find_invalid_utf8(written) != written.size()) return false;
    value = written;
    return true;
  } else {
    for (const Named<T>& one : choices<T>()) {
      if (one.name != written) continue;
      value = one.value;
      return true;
    }
    return false;
  }
}

/// The shortest decimal text that reads back to the same number, marked as a TOML float.
std::string toml_number(double value);

/// [1, 2, 3]
std::string toml_list(const std::vector<std::int64_t>& values);
/// ["a", "b"]
std::string toml_names(const std::vector<std::string>& values);

/// In double quotes on one line, with escapes for quotes, backslashes and every control character; UTF-8 stays as it
/// is.
std::string toml_text(std::string_view value);

/// The value as TOML writes it.
template <class T>
std::string toml_value(const T& value) {
  if constexpr (std::is_floating_point_v<T>)
    return toml_number(value);
  else if constexpr (std::is_arithmetic_v<T>)
    return text(value);
  else if constexpr (kIsList<T>)
    return toml_list(value);
  else if constexpr (kIsNames<T>)
    return toml_names(value);
  else if constexpr (kIsText<T>)
    return toml_text(value);
  else
    return '"' + std::string(name_of(value)) + '"';
}

}  // namespace engram

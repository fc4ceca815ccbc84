#pragma once
/// Names of enumerators, as configurations, command lines and files write them. Beside an enum stands one table, from
/// which names, reading and messages come; it is found by the enum's type, in whatever namespace that is:
///
///   enum class Pad : std::uint8_t { attend_zero, mask };
///   constexpr auto names_of(Pad) {
///     return std::to_array<Named<Pad>>({{Pad::attend_zero, "attend_zero"}, {Pad::mask, "mask"}});
///   }

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace engram {

template <class E>
struct Named {
  E value;
  std::string_view name;
};

/// An enum with a table, which has every enumerator once, in the order in which messages list them; a test finds those
/// that one lacks (tests/enum_names_test.cpp).
template <class E>
concept HasNames = requires(E value) {
  names_of(value);
};

/// "?" for a number that is no enumerator.
template <HasNames E>
constexpr std::string_view name_of(E value) {
  for (const auto& [candidate, name] : names_of(value))
    if (candidate == value) return name;
  return "?";
}

/// The enumerator of this name; none: nobody has it.
template <HasNames E>
constexpr std::optional<E> find_named(std::string_view name) {
  for (const auto& [value, known] : names_of(E{}))
    if (known == name) return value;
  return std::nullopt;
}

/// "a, b or c", for messages.
template <HasNames E>
std::string choices_text() {
  const auto names = names_of(E{});
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i)
    list += text(i == 0 ? "" : i + 1 < names.size() ? ", " : " or ", names[i].name);
  return list;
}

/// As find_named(), but throws UsageError for another name: "WHAT must be a, b or c, got 'd'".
template <HasNames E>
E parse_named(std::string_view what, std::string_view name) {
  const std::optional<E> found = find_named<E>(name);
  if (!found) throw UsageError(text(what, " must be ", choices_text<E>(), ", got '", name, "'"));
  return *found;
}

}  // namespace engram

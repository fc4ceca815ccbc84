#include "apps/command_line/number_bounds.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <system_error>
#include <type_traits>

#include "core/error.hpp"

namespace engram {
namespace {

std::string refused(const std::string& rule, const std::string& given) {
  return text("must be ", rule, ", got '", given, "'");
}

/// "of at least 1", "from 0 to 4096", "above 0"; empty where there are no bounds. In the digits of Number.
template <class Number>
std::string range_text(const NumberBounds& bounds) {
  const auto written = [](double bound) { return text(static_cast<Number>(bound)); };
  const bool has_least = std::isfinite(bounds.least), has_most = std::isfinite(bounds.most);
  if (has_least && has_most && !bounds.above_least)
    return " from " + written(bounds.least) + " to " + written(bounds.most);
  std::string range;
  if (has_least) range += (bounds.above_least ? " above " : " of at least ") + written(bounds.least);
  if (has_most) range += (has_least ? " and at most " : " of at most ") + written(bounds.most);
  return range;
}

}  // namespace

bool NumberBounds::hold(double value) const { return (above_least ? value > least : value >= least) && value <= most; }

std::string number_fault(const std::string& given, const NumberBounds& bounds) {
  double value = 0;
  const char* const end = given.data() + given.size();
  const std::size_t plus = given.starts_with('+') && !given.starts_with("+-") ? 1 : 0;
  const auto [rest, error] = std::from_chars(given.data() + plus, end, value);
  if (error == std::errc() && rest == end && std::isfinite(value) && bounds.hold(value)) return {};
  return refused("a number" + range_text<double>(bounds), given);
}

template <class T>
std::string integer_fault(std::string& given, const NumberBounds& own_bounds) {
  NumberBounds bounds = own_bounds;
  if (bounds.above_least) bounds.least += 1;
  bounds.above_least = false;
  if (std::is_unsigned_v<T>) bounds.least = std::max(bounds.least, 0.0);
  const bool negative = given.starts_with('-');
  const std::size_t digits = negative || given.starts_with('+') ? 1 : 0;
  std::size_t first = digits;
  while (first + 1 < given.size() && given[first] == '0') ++first;
  const std::string plain = (negative ? "-" : "") + given.substr(first);
  T value{};
  const char* const end = plain.data() + plain.size();
  const auto [rest, error] = std::from_chars(plain.data(), end, value);
  // A sign of its own would be taken behind ours.
  const bool one_sign = digits == 0 || (given.size() > 1 && given[1] != '-');
  const bool whole = rest == end && one_sign;
  if (error == std::errc() && whole && bounds.hold(static_cast<double>(value))) {
    given = plain;
    return {};
  }
  std::string range = range_text<std::int64_t>(bounds);
  // Too large a number is within bounds on one side only: the other is that of the variable.
  if (error == std::errc::result_out_of_range && whole && !(std::isfinite(bounds.least) && std::isfinite(bounds.most)))
    range = std::isfinite(bounds.least)
                ? text(" from ", static_cast<std::int64_t>(bounds.least), " to ", std::numeric_limits<T>::max())
                : text(" from ", std::numeric_limits<T>::min(), " to ", std::numeric_limits<T>::max());
  return refused("an integer" + range, given);
}

template std::string integer_fault<int>(std::string&, const NumberBounds&);
template std::string integer_fault<std::int64_t>(std::string&, const NumberBounds&);
template std::string integer_fault<std::uint64_t>(std::string&, const NumberBounds&);

}  // namespace engram

#pragma once
/// What numbers an option takes, and what is said of others.

#include <limits>
#include <string>

namespace engram {

struct NumberBounds {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above_least = false;  ///< `least` itself is not taken

  bool hold(double value) const;
};

/// What is wrong with a number on a command line: "must be an integer of at least 1, got '0'"; empty: nothing.
std::string number_fault(const std::string& given, const NumberBounds& bounds);

/// What is wrong with an integer of type T (int, std::int64_t, std::uint64_t). Integers are decimal, and written back
/// without a plus and leading zeros. What T cannot hold is refused like what is out of bounds.
template <class T>
std::string integer_fault(std::string& given, const NumberBounds& bounds);

}  // namespace engram

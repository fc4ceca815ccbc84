#pragma once

#include <algorithm>
#include <vector>

namespace engram {

/// The middle one of at least one number, of an even number of them the larger of the two in the middle.
inline double median_of(std::vector<double> numbers) {
  std::ranges::sort(numbers);
  return numbers[numbers.size() / 2];
}

}  // namespace engram

#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace engram::harness {

using Ids = std::vector<std::int32_t>;

/// Token i is i, so that a block shows where it was taken from.
inline Ids count_up(std::int32_t total) {
  Ids ids(static_cast<std::size_t>(total));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

}  // namespace engram::harness

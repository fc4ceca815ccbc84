#pragma once

#include <cstdint>
#include <numeric>
#include <vector>

namespace engram::harness {

using TokenIds = std::vector<std::int32_t>;

/// Token i is i, so that a block shows where it was taken from.
inline TokenIds count_up(std::int32_t total) {
  TokenIds ids(static_cast<std::size_t>(total));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

}  // namespace engram::harness

#pragma once
/// What all ways of `engram bench` share.

#include <cstdint>
#include <string>
#include <vector>

namespace engram {

/// Options of the command itself.
struct BenchOptions {
  std::vector<std::string> configs, overrides;
  std::int64_t steps = 10;
  std::int64_t vocabulary = 0;  ///< 0: the config's
  std::int64_t tokens = 0;      ///< of a step; 0: the usual ones
  std::int64_t product_size = 4000;
  std::string device = "cpu", dtype;
  int threads = 0;
  bool json = false;
};

}  // namespace engram

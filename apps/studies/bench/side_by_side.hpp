#pragma once
/// Several models that read in turns, so that all see the same machine: how fast each is beside the others.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/studies/bench/bench_model.hpp"

namespace engram {

struct SideBySide {
  std::string name;
  std::int64_t parameters = 0;
  std::int64_t slots = 0;       ///< of all its product-key memories
  double flops = 0;             ///< per token, by the formulas
  std::int64_t tokens = 0;      ///< of a round: a block of every stream
  std::vector<double> seconds;  ///< of each round

  double median_seconds() const;
  double tokens_per_second() const { return static_cast<double>(tokens) / median_seconds(); }
};

/// Random weights without gradients, all in memory together. The past of each is filled, then each reads a block of
/// training.batch streams in every round; the first round does not count.
std::vector<SideBySide> bench_side_by_side(const std::vector<BenchCase>& cases, Runtime& runtime, std::int64_t rounds);

/// With ratios to the first.
std::string table_of(const std::vector<SideBySide>& results);
nlohmann::json json_of(const std::vector<SideBySide>& results);

}  // namespace engram

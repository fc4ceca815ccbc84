#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/commands/bench_options.hpp"

namespace engram {

/// `engram bench` of configs: training, with --compare-spans or --inference.
struct BenchModelsArguments {
  std::string filter;
  std::vector<std::int64_t> spans;  ///< positions
  bool compare_spans = false;
  bool inference = false;
};

/// Times and prints. Throws UsageError for options and spans that do not fit the configs.
void bench_models(const BenchModelsArguments& arguments, const BenchOptions& shared);

}  // namespace engram

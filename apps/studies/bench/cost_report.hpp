#pragma once
/// Counted costs for people and for programs.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/studies/bench/cost_bench.hpp"

namespace engram {

/// Two tables: what every place that launches kernels asks for, and the least time of every kernel on cards.
std::string table_of(const BenchCase& bench, const CostResult& result);
/// Everything that was counted of one kernel, in words. Throws UsageError for one that did not run.
std::string listing_of(const CostResult& result, const std::string& kernel);
nlohmann::json json_of(const BenchCase& bench, const CostResult& result);

}  // namespace engram

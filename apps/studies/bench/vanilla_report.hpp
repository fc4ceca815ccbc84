#pragma once
/// What bench_against_vanilla() found, beside the formulas at the same sizes and the paper's numbers: text, JSON and
/// SVG.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/studies/bench/vanilla_bench.hpp"

namespace engram {

std::string table_of(const VanillaBenchCase& bench, const std::vector<VanillaComparison>& comparisons,
                     std::int64_t steps);
nlohmann::json json_of(const VanillaBenchCase& bench, const std::vector<VanillaComparison>& comparisons,
                       std::int64_t steps);
/// Slowdowns over attention lengths.
std::string svg_of(const VanillaBenchCase& bench, const std::vector<VanillaComparison>& comparisons);

}  // namespace engram

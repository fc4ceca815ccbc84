#pragma once
/// What a step takes of a card by groups of kernels (cost_groups.hpp), for people and for programs.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/studies/bench/cost_groups.hpp"

namespace engram {

std::string group_table_of(const BenchCase& bench, const CostResult& result);
nlohmann::json json_of_groups(const CostResult& result);

}  // namespace engram

#pragma once
/// What bench_softmax() found, beside the limits of the machine.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/studies/bench/softmax_bench.hpp"

namespace engram {

std::string table_of(const SoftmaxBench& bench, const SoftmaxResult& result, const MachineLimits& limits);
nlohmann::json json_of(const SoftmaxBench& bench, const SoftmaxResult& result, const MachineLimits& limits);

}  // namespace engram

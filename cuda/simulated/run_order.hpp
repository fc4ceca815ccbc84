#pragma once
/// The numbers 0, 1, ..., count - 1 in the order in which blocks or threads shall run.

#include <cstdint>
#include <vector>

#include "cuda/simulated/launch_record.hpp"

namespace engram::simulated {

/// `stream` tells shuffles of one seed apart.
void make_order(const RunOptions& options, std::uint64_t stream, std::int64_t count, std::vector<std::int64_t>& order);

}  // namespace engram::simulated

#pragma once
/// Ids outside a table, found by the device that would use them.

#include <cstdint>

#include "core/kernel.hpp"

namespace engram::kernels {

/// Ids that are not in [0, below) become 0, so that nothing outside the table is read or written; where there are any,
/// report[0] becomes the smaller of itself and `lookup` 2^31 + the place of the first. ids: i64, fewer than 2^31;
/// lookup: in [0, 2^31); report: [1] i64.
inline constinit Kernel<void(std::int64_t below, std::int64_t lookup, Tensor& ids, Tensor& report)> replace_wrong_ids{
    "replace_wrong_ids"};

}  // namespace engram::kernels

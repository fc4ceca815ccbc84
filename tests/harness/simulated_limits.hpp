#pragma once
/// Limits of the simulated device (cuda/simulated/backend.hpp), for tests that are also in programs without it.

#include <cstddef>
#include <cstdint>

#include "core/backend.hpp"

namespace engram::simulated {

// Weak: without the device they are null, and tests that find no such device do not call them.
[[gnu::weak]] std::size_t& memory_limit_of(Backend& backend);
[[gnu::weak]] std::size_t& shared_limit_of(Backend& backend);
[[gnu::weak]] bool& warpgroup_products_of(Backend& backend);
[[gnu::weak]] std::int64_t warpgroup_product_count(Backend& backend);

}  // namespace engram::simulated

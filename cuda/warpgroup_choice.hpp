#pragma once
/// Whether kernels with products by warpgroups (cuda/warpgroup.cuh) are taken where a device has them, on cards and on
/// the simulated device.

#include <cstdlib>
#include <string_view>

#include "core/error.hpp"

namespace engram::cuda {

/// What the environment variable ENGRAM_CARD_PRODUCTS says: warpgroup, as without it, or warp, for the other form.
/// Throws UsageError on another text.
inline bool takes_warpgroups() {
  const char* const text_of = std::getenv("ENGRAM_CARD_PRODUCTS");
  if (text_of == nullptr) return true;
  const std::string_view name = text_of;
  if (name == "warpgroup" || name == "warp") return name == "warpgroup";
  throw UsageError(text("ENGRAM_CARD_PRODUCTS: must be warpgroup or warp, got '", name, "'"));
}

}  // namespace engram::cuda

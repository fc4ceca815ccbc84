#pragma once
/// Limits of the simulated device (cuda/simulated/backend.hpp), for tests that are also in programs without it.

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/backend.hpp"

namespace engram::simulated {

// Weak: without the device they are null, and tests that find no such device do not call them.
[[gnu::weak]] std::size_t& memory_limit_of(Backend& backend);
[[gnu::weak]] std::size_t& shared_limit_of(Backend& backend);
[[gnu::weak]] bool& warpgroup_products_of(Backend& backend);
[[gnu::weak]] int& share_blocks_of(Backend& backend);
[[gnu::weak]] std::int64_t warpgroup_product_count(Backend& backend);

}  // namespace engram::simulated

namespace engram::harness {

/// While it lives, sums over all queries have so few blocks on a simulated device that many of them go through several
/// tiles of queries, as in large models: with all blocks, those of small calls have one tile each. Nothing on other
/// devices.
class FewShares {
 public:
  explicit FewShares(Backend& device) {
    if (device.device().kind != DeviceKind::simulated) return;
    blocks_ = &simulated::share_blocks_of(device);
    before_ = std::exchange(*blocks_, kBlocks);
  }
  FewShares(const FewShares&) = delete;
  FewShares& operator=(const FewShares&) = delete;
  ~FewShares() {
    if (blocks_ != nullptr) *blocks_ = before_;
  }

 private:
  static constexpr int kBlocks = 7;  // heads with many tiles of results have one share of the queries, others a few
  int* blocks_ = nullptr;
  int before_ = 0;
};

}  // namespace engram::harness

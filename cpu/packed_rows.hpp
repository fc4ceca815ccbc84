#pragma once
/// Rows that many products meet as their right operand, rounded to bf16 and packed once (bf16_product.hpp).

#include <cstdint>

#include "cpu/bf16_product.hpp"

namespace engram::cpu {

/// What products do with rows.
struct RowUses {
  bool against = false;  ///< op(b) is their transpose: scores of other rows against them
  bool times = false;    ///< op(b) is the rows: their sums with weights
};

/// Rows [count, depth], packed as their uses need it. A product may begin at a later row, where a strip or a tile
/// begins.
class PackedRows {
 public:
  PackedRows() = default;
  /// In `memory` of size() elements, aligned to 64 bytes, until pack() with nothing that means something.
  PackedRows(std::int64_t count, std::int64_t depth, const RowUses& uses, bf16* memory)
      : count_(count),
        depth_(depth),
        against_(uses.against ? memory : nullptr),
        times_(uses.times ? memory + (uses.against ? packed_size(count, depth) : 0) : nullptr) {}
  static std::int64_t size(std::int64_t count, std::int64_t depth, const RowUses& uses) {
    return (uses.against ? packed_size(count, depth) : 0) + (uses.times ? packed_size(depth, count) : 0);
  }

  /// From rows `stride` elements apart, on the calling thread.
  void pack(const float* rows, std::int64_t stride) const {
    if (against_ != nullptr)
      pack_b({.transpose_b = Transpose::yes, .n = count_, .k = depth_, .b = rows, .b_stride = stride}, 0,
             strips_of(count_), against_);
    if (times_ != nullptr)
      pack_b({.n = depth_, .k = count_, .b = rows, .b_stride = stride}, 0, strips_of(depth_), times_);
  }
  void pack(const double*, std::int64_t) const {}

  /// From row `first` on; not packed where no strip begins there, or nobody asked for this use.
  PackedB against(std::int64_t first) const {
    if (against_ == nullptr || first % kTileRows != 0) return {};
    const std::int64_t strip = packed_size(kTileRows, depth_);
    return {against_ + first / kTileRows * strip, strip};
  }
  PackedB times(std::int64_t first) const {
    if (times_ == nullptr || first % kTileDepth != 0) return {};
    return {times_ + first * kTileRows, packed_size(kTileRows, count_)};
  }

 private:
  std::int64_t count_ = 0, depth_ = 0;
  bf16 *against_ = nullptr, *times_ = nullptr;
};

}  // namespace engram::cpu

#pragma once
/// What a model's pass over a block, or over some of its rows, found: what one rank tells the others.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace engram {

struct PartFindings {
  /// What one layer's memory read, as ProductKeyReads has it.
  struct Reads {
    std::uint64_t layer = 0;
    std::vector<std::int64_t> ids;
    std::vector<double> weights;
  };

  std::vector<double> losses;              ///< of all targets of the rows, in nats
  std::vector<std::vector<double>> zetas;  ///< SpanMeans::read()
  std::vector<Reads> reads;                ///< where somebody hears of them, in the order of layers

  /// Appends it to what goes to other ranks, bit by bit.
  void append_to(std::string& bytes) const;
  /// Takes it from the beginning of `bytes`, where append_to() put it. Throws Error when there is less than that.
  static PartFindings take_from(std::string_view& bytes);
};

}  // namespace engram

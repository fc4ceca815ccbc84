#pragma once
/// What the layers of a Transformer-XL remember of earlier segments, and which of it a query sees. Dai et al.:
/// "Transformer-XL" (2019), section 3.2; [transformer-xl 1.5, 1.7].

#include <cstdint>
#include <string_view>

#include "core/names.hpp"

namespace engram {

/// Which keys a query sees ([transformer-xl 1.5]); M is SegmentContext::memory.
enum class Visibility : std::uint8_t {
  all,                ///< all of the memory and of the segment up to itself
  last_memory,        ///< the last M positions, itself among them (same_length of the released PyTorch program)
  last_memory_plus_1  ///< one more (same_length of the released TensorFlow program)
};
constexpr auto names_of(Visibility) {
  return std::to_array<Named<Visibility>>({{Visibility::all, "all"},
                                           {Visibility::last_memory, "last_memory"},
                                           {Visibility::last_memory_plus_1, "last_memory_plus_1"}});
}
/// What a memory is at the start of a stream.
enum class MemoryStart : std::uint8_t {
  empty,  ///< nothing; it grows to its length
  zeros   ///< zero vectors that take part in the softmax
};
constexpr auto names_of(MemoryStart) {
  return std::to_array<Named<MemoryStart>>({{MemoryStart::empty, "empty"}, {MemoryStart::zeros, "zeros"}});
}

/// What evaluation may set otherwise than training did, with the same weights.
struct SegmentContext {
  std::int64_t memory = 0;  ///< M, positions remembered
  Visibility visibility = Visibility::all;
  MemoryStart start = MemoryStart::empty;
  std::int64_t clamp = 0;  ///< as TransformerXlOptions::clamp; 0 or less: none
};

}  // namespace engram

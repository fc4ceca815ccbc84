#pragma once
/// One access of a warp, and what a card makes of it.

#include <array>
#include <cstdint>

#include "core/launch_cost.hpp"

namespace engram::simulated {

/// The lanes of a warp that make one access together.
struct WarpAccess {
  enum class Kind : std::uint8_t { read, write, atomic };

  std::array<std::uintptr_t, 32> address;
  std::uint32_t lanes = 0;  ///< bit l: lane l takes part, at address[l]
  std::uint8_t bytes = 0;   ///< of each lane, up to 16
  Kind kind = Kind::read;
};

/// Wavefronts of an access to shared memory. Up to 4 bytes a lane are served for the warp at once, 8 bytes for its
/// halves, 16 bytes for its quarters; of those together a wavefront takes one word from each bank. Lanes that want the
/// same word share it, but for atomic operations, which take turns.
struct SharedWavefronts {
  int needed = 0;
  int least = 0;  ///< without conflicts
};
SharedWavefronts shared_wavefronts(const WarpAccess& access);

/// A sector of 32 bytes and which of its bytes lanes want.
struct TouchedSector {
  std::uintptr_t number = 0;  ///< address / 32
  std::uint32_t wanted = 0;   ///< bit b: byte b
};
/// The sectors that an access touches, each once. A lane of up to 16 bytes touches at most two.
class TouchedSectors {
 public:
  explicit TouchedSectors(const WarpAccess& access);
  const TouchedSector* begin() const { return sectors_.data(); }
  const TouchedSector* end() const { return sectors_.data() + count_; }
  int count() const { return count_; }
  int wanted_bytes() const;

 private:
  std::array<TouchedSector, 64> sectors_;
  int count_ = 0;
};

}  // namespace engram::simulated

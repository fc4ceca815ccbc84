#pragma once
/// The collective calls of one warp. A call waits for exactly the lanes of its mask; lanes that give one mask at one
/// place of the source meet there, bring a value each, and read each other's.

#include <array>
#include <cstdint>
#include <string>

#include "cuda/simulated/sanitizers.hpp"
#include "cuda/simulated/site.hpp"

namespace engram::simulated {

inline constexpr int kWarpSize = 32;

/// Lanes that wait for each other, or that have met and did not all leave yet.
struct Meeting {
  Site site;
  std::uint32_t mask = 0;
  std::uint32_t arrived = 0;
  std::uint32_t left = 0;
  std::array<std::uint64_t, kWarpSize> values;
  HappensBefore* order = nullptr;

  bool complete() const { return arrived == mask; }
};

class Warp {
 public:
  /// `present`: the lanes that have a thread.
  void begin_block(std::uint32_t present);

  /// What is wrong with this call, as "the rule, got the facts"; empty: nothing.
  std::string mistake(int lane, const Site& site, std::uint32_t mask) const;
  /// After mistake() found none. The caller waits until the meeting is complete, reads, and leaves.
  Meeting& arrive(int lane, const Site& site, std::uint32_t mask, std::uint64_t value);
  void leave(Meeting& meeting, int lane);
  /// Whether no lane but those of `mask` still runs.
  bool runs_only(std::uint32_t mask) const { return (present_ & ~exited_ & ~mask) == 0; }
  /// The lane's thread has ended. Returns what is wrong with that: somebody may wait for it.
  std::string exit(int lane);

 private:
  std::array<Meeting, kWarpSize> meetings_;
  std::uint32_t used_ = 0;  // bit m: meetings_[m]
  std::array<Meeting*, kWarpSize> waits_in_{};
  std::uint32_t present_ = 0;
  std::uint32_t exited_ = 0;
  // Many, in turn: a meeting that took over another's would look ordered after it, and hide a race.
  std::array<HappensBefore, 64> orders_;
  unsigned next_order_ = 0;
};

/// "0x0000ffff".
std::string mask_text(std::uint32_t mask);

}  // namespace engram::simulated

#include "cuda/simulated/cost/warp_access.hpp"

#include <algorithm>
#include <bit>

namespace engram::simulated {
namespace {

constexpr int kBanks = 32, kWordBytes = 4, kSectorBytes = 32;

/// Of the lanes first, ..., first + count - 1 together.
int group_wavefronts(const WarpAccess& access, int first, int count) {
  std::array<std::uintptr_t, 64> words;  // up to 32 lanes of a word, or 8 of four and more where they are not aligned
  std::array<int, kBanks> in_bank{};
  std::size_t known = 0;
  int most = 0;
  for (int lane = first; lane < first + count; ++lane) {
    if (!(access.lanes >> lane & 1u)) continue;
    const std::uintptr_t address = access.address[static_cast<std::size_t>(lane)];
    const std::uintptr_t last = (address + access.bytes - 1) / kWordBytes;
    for (std::uintptr_t word = address / kWordBytes; word <= last; ++word) {
      const auto end = words.begin() + static_cast<std::ptrdiff_t>(known);
      if (access.kind != WarpAccess::Kind::atomic && std::find(words.begin(), end, word) != end) continue;
      if (known < words.size()) words[known++] = word;
      most = std::max(most, ++in_bank[word % kBanks]);
    }
  }
  return most;
}

}  // namespace

SharedWavefronts shared_wavefronts(const WarpAccess& access) {
  const int groups = access.bytes <= 4 ? 1 : access.bytes <= 8 ? 2 : 4;
  SharedWavefronts found;
  for (int group = 0; group < groups; ++group) {
    const int wavefronts = group_wavefronts(access, group * (32 / groups), 32 / groups);
    found.needed += wavefronts;
    found.least += wavefronts > 0 ? 1 : 0;
  }
  return found;
}

TouchedSectors::TouchedSectors(const WarpAccess& access) {
  for (std::uint32_t lanes = access.lanes; lanes != 0; lanes &= lanes - 1) {
    std::uintptr_t address = access.address[static_cast<std::size_t>(std::countr_zero(lanes))];
    const std::uintptr_t end = address + access.bytes;
    while (address < end) {
      const std::uintptr_t sector = address / kSectorBytes, stop = std::min(end, (sector + 1) * kSectorBytes);
      const auto from = static_cast<int>(address % kSectorBytes), count = static_cast<int>(stop - address);
      // Neighbouring lanes mostly want the sector that was last touched.
      int i = count_ - 1;
      while (i >= 0 && sectors_[static_cast<std::size_t>(i)].number != sector) --i;
      if (i < 0) {
        i = count_++;
        sectors_[static_cast<std::size_t>(i)] = {sector, 0};
      }
      sectors_[static_cast<std::size_t>(i)].wanted |= (~std::uint32_t{0} >> (32 - count)) << from;
      address = stop;
    }
  }
}

int TouchedSectors::wanted_bytes() const {
  int bytes = 0;
  for (const TouchedSector& sector : *this) bytes += std::popcount(sector.wanted);
  return bytes;
}

}  // namespace engram::simulated

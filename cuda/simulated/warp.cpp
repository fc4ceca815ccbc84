#include "cuda/simulated/warp.hpp"

#include <bit>

#include "core/error.hpp"

namespace engram::simulated {

std::string mask_text(std::uint32_t mask) {
  std::string digits = "0x";
  for (int shift = 28; shift >= 0; shift -= 4) digits += "0123456789abcdef"[(mask >> shift) & 15u];
  return digits;
}

void Warp::begin_block(std::uint32_t present) {
  used_ = 0;
  waits_in_.fill(nullptr);
  present_ = present;
  exited_ = 0;
}

std::string Warp::mistake(int lane, const Site& site, std::uint32_t mask) const {
  if (!(mask >> lane & 1u))
    return text("a lane must be in its own mask, got lane ", lane, " and mask ", mask_text(mask), " at ", site.text());
  if (const std::uint32_t missing = mask & ~present_; missing != 0)
    return text("a mask must name lanes of the block, got mask ", mask_text(mask), " at ", site.text(), ", whose lane ",
                std::countr_zero(missing), " has no thread");
  if (const std::uint32_t gone = mask & exited_; gone != 0)
    return text("a mask must not name a lane that has exited, got mask ", mask_text(mask), " at ", site.text(),
                ", whose lane ", std::countr_zero(gone), " has returned from the kernel");
  for (int other = 0; other < kWarpSize; ++other) {
    if (!(mask >> other & 1u) || waits_in_[static_cast<std::size_t>(other)] == nullptr) continue;
    const Meeting& meeting = *waits_in_[static_cast<std::size_t>(other)];
    // A lane may do something with fewer lanes before it comes to where others wait for it.
    if (!(meeting.mask >> lane & 1u)) continue;
    if (meeting.mask != mask)
      return text("lanes that wait for each other must give one mask, got ", mask_text(mask), " of lane ", lane, " at ",
                  site.text(), " and ", mask_text(meeting.mask), " of lane ", other, " at ", meeting.site.text());
    if (!(meeting.site == site))
      return text("the lanes of a mask must make one call, got lane ", lane, " at ", site.text(), " and lane ", other,
                  " at ", meeting.site.text());
  }
  return {};
}

Meeting& Warp::arrive(int lane, const Site& site, std::uint32_t mask, std::uint64_t value) {
  Meeting* meeting = nullptr;
  // Only the others of its mask can wait where this lane goes: mistake() made sure of the rest.
  for (int other = 0; other < kWarpSize && meeting == nullptr; ++other) {
    Meeting* candidate = waits_in_[static_cast<std::size_t>(other)];
    if (candidate != nullptr && candidate->mask == mask) meeting = candidate;
  }
  if (meeting == nullptr) {
    const int place = std::countr_one(used_);  // at most one meeting per lane, so there is a free one
    used_ |= 1u << place;
    meeting = &meetings_[static_cast<std::size_t>(place)];
    meeting->site = site;
    meeting->mask = mask;
    meeting->arrived = meeting->left = 0;
    meeting->order = &orders_[next_order_++ % orders_.size()];
  }
  meeting->values[static_cast<std::size_t>(lane)] = value;
  meeting->arrived |= 1u << lane;
  waits_in_[static_cast<std::size_t>(lane)] = meeting;
  if (meeting->complete())
    for (int other = 0; other < kWarpSize; ++other)
      if (mask >> other & 1u) waits_in_[static_cast<std::size_t>(other)] = nullptr;
  return *meeting;
}

void Warp::leave(Meeting& meeting, int lane) {
  meeting.left |= 1u << lane;
  if (meeting.left == meeting.mask) used_ &= ~(1u << (&meeting - meetings_.data()));
}

std::string Warp::exit(int lane) {
  exited_ |= 1u << lane;
  for (int other = 0; other < kWarpSize; ++other) {
    const Meeting* meeting = waits_in_[static_cast<std::size_t>(other)];
    if (meeting != nullptr && (meeting->mask >> lane & 1u))
      return text("a mask must not name a lane that has exited, got mask ", mask_text(meeting->mask), " of lane ",
                  other, " at ", meeting->site.text(), ", and lane ", lane, " returned from the kernel");
  }
  return {};
}

}  // namespace engram::simulated

#include "cuda/simulated/intrinsics.hpp"

#include "core/error.hpp"
#include "cuda/simulated/block.hpp"

namespace engram::simulated {
namespace {

Thread& running_thread() { return *const_cast<Thread*>(static_cast<const Thread*>(current_place)); }

/// The lane that a shuffle reads. Where it would leave the group of `width` lanes, that is the caller itself.
int source_lane(int lane, Shuffle how, std::uint32_t argument, int width) {
  const int first = lane / width * width;
  const int last = first + width - 1;
  const auto distance = static_cast<int>(argument & 31u);
  switch (how) {
    case Shuffle::index:
      return first + static_cast<int>(argument % static_cast<std::uint32_t>(width));
    case Shuffle::up:
      return argument > 31u || lane - distance < first ? lane : lane - distance;
    case Shuffle::down:
      return argument > 31u || lane + distance > last ? lane : lane + distance;
    case Shuffle::exclusive_or:  // groups before the caller's may be read
      return argument > 31u || (lane ^ distance) > last ? lane : lane ^ distance;
  }
  return lane;
}

std::string width_mistake(int width, const Site& site) {
  if (width >= 1 && width <= kWarpSize && (width & (width - 1)) == 0) return {};
  return text("the width of a shuffle must be 1, 2, 4, 8, 16 or 32, got ", width, " at ", site.text());
}

std::string source_mistake(int lane, int source, std::uint32_t mask, const Site& site) {
  if (mask >> source & 1u) return {};
  return text("a shuffle must read a lane of its mask, got lane ", lane, " reading lane ", source, " with mask ",
              mask_text(mask), " at ", site.text());
}

}  // namespace

void block_barrier(const char* file, int line, const char* name) {
  Thread& self = running_thread();
  self.owner->barrier(self, {file, line, name});
}

void warp_barrier(const char* file, int line, const char* name, std::uint32_t mask) {
  Thread& self = running_thread();
  Meeting& meeting = self.owner->meet(self, {file, line, name}, mask, 0, Block::Memory::ordered);
  self.owner->leave(self, meeting);
}

std::uint64_t warp_shuffle(const char* file, int line, const char* name, std::uint32_t mask, std::uint64_t value,
                           Shuffle how, std::uint32_t argument, int width) {
  Thread& self = running_thread();
  const Site site{file, line, name};
  self.owner->fail_unless_empty(self, width_mistake(width, site));
  Meeting& meeting = self.owner->meet(self, site, mask, value, Block::Memory::not_ordered);
  const int source = source_lane(self.lane(), how, argument, width);
  self.owner->fail_unless_empty(self, source_mistake(self.lane(), source, mask, site));
  const std::uint64_t result = meeting.values[static_cast<std::size_t>(source)];
  self.owner->leave(self, meeting);
  return result;
}

std::uint32_t warp_ballot(const char* file, int line, const char* name, std::uint32_t mask, bool value) {
  Thread& self = running_thread();
  Meeting& meeting = self.owner->meet(self, {file, line, name}, mask, value ? 1 : 0, Block::Memory::not_ordered);
  std::uint32_t ballot = 0;
  for (int lane = 0; lane < kWarpSize; ++lane)
    if ((mask >> lane & 1u) && meeting.values[static_cast<std::size_t>(lane)] != 0) ballot |= 1u << lane;
  self.owner->leave(self, meeting);
  return ballot;
}

std::uint32_t warp_sum(const char* file, int line, const char* name, std::uint32_t mask, std::uint32_t value) {
  Thread& self = running_thread();
  Meeting& meeting = self.owner->meet(self, {file, line, name}, mask, value, Block::Memory::not_ordered);
  std::uint32_t sum = 0;
  for (int lane = 0; lane < kWarpSize; ++lane)
    if (mask >> lane & 1u) sum += static_cast<std::uint32_t>(meeting.values[static_cast<std::size_t>(lane)]);
  self.owner->leave(self, meeting);
  return sum;
}

void warp_gather(const char* file, int line, const char* name, std::uint32_t mask, std::uint64_t value,
                 std::uint64_t (&all)[32]) {
  Thread& self = running_thread();
  Meeting& meeting = self.owner->meet(self, {file, line, name}, mask, value, Block::Memory::not_ordered);
  for (int lane = 0; lane < kWarpSize; ++lane)
    if (mask >> lane & 1u) all[lane] = meeting.values[static_cast<std::size_t>(lane)];
  self.owner->leave(self, meeting);
}

std::byte* dynamic_shared_memory() {
  Thread& self = running_thread();
  if (self.owner->shared_bytes() == 0)
    self.owner->fail(self, "a kernel with dynamic_shared must be launched with shared_bytes, got 0");
  return self.owner->shared_memory();
}

void begin_copy(const char* file, int line, const char* name, void* to, const void* from, bool or_zeros, bool operand) {
  Thread& self = running_thread();
  self.owner->begin_copy(
      self, {.to = to, .from = from, .or_zeros = or_zeros, .operand = operand, .site = {file, line, name}});
}

void finish_copies() {
  Thread& self = running_thread();
  self.owner->finish_copies(self);
}

void warpgroup_product(const char* file, int line, const char* name, const WarpgroupProduct& product) {
  Thread& self = running_thread();
  self.owner->multiply(self, {file, line, name}, product);
}

void operand_written(const char* file, int line, const char* name, const void* data, std::size_t bytes) {
  Thread& self = running_thread();
  self.owner->operand_written(self, {file, line, name}, data, bytes);
}

void operands_stored() {
  Thread& self = running_thread();
  self.owner->operands_stored(self);
}

std::uint64_t operand_address(const char* file, int line, const char* name, const void* data) {
  Thread& self = running_thread();
  const auto at = reinterpret_cast<std::uintptr_t>(data) - reinterpret_cast<std::uintptr_t>(dynamic_shared_memory());
  if (at >= self.owner->shared_bytes())
    self.owner->fail(self, text("an operand must lie in the dynamic shared memory, got another address at ",
                                Site{file, line, name}.text()));
  return at;
}

}  // namespace engram::simulated

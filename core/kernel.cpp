#include "core/kernel.hpp"

#include <algorithm>
#include <vector>

#include "core/error.hpp"

namespace engram {
namespace {

// Filled by static initialisers before main, and once more when a portable build opens its CPU backend.
std::vector<KernelSlot*>& registry() {
  static std::vector<KernelSlot*> slots;
  return slots;
}

}  // namespace

void KernelSlot::bind_any(DeviceKind kind, Any function, KernelMemory memory) {
  std::vector<KernelSlot*>& slots = registry();
  if (std::ranges::find(slots, this) == slots.end()) slots.push_back(this);
  functions_[static_cast<std::size_t>(kind)] = function;
  memory_[static_cast<std::size_t>(kind)] = memory;
}

void KernelSlot::throw_not_available(DeviceKind kind) const {
  std::string has;
  for (int other = 0; other < kDeviceKinds; ++other)
    if (functions_[other] != nullptr)
      has += (has.empty() ? "" : ", ") + std::string(name_of(static_cast<DeviceKind>(other)));
  throw NotAvailable(text(name_, ": has no kernel for device ", kind, "; it has: ", has.empty() ? "none" : has));
}

std::span<KernelSlot* const> bound_kernels() { return registry(); }

}  // namespace engram

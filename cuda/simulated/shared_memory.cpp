#include "cuda/simulated/shared_memory.hpp"

#include <algorithm>
#include <cstring>

#include "cuda/simulated/sanitizers.hpp"

namespace engram::simulated {
namespace {

constexpr std::byte kNaN{0xff};    // in every floating-point type
constexpr std::byte kGuard{0xf7};  // a NaN too, but not the one that a kernel computes

}  // namespace

SharedMemory::~SharedMemory() {
  if (data_ == nullptr) return;
  allow_memory(data_, capacity_ + kGuardBytes);
  ::operator delete (data_, std::align_val_t{kAlignment});
}

void SharedMemory::begin_block(std::size_t bytes) {
  if (data_ != nullptr) allow_memory(data_, capacity_ + kGuardBytes);
  if (data_ == nullptr || bytes > capacity_) {
    if (data_ != nullptr) ::operator delete (data_, std::align_val_t{kAlignment});
    data_ = static_cast<std::byte*>(::operator new (bytes + kGuardBytes, std::align_val_t{kAlignment}));
    capacity_ = bytes;
  }
  bytes_ = bytes;
  std::memset(data_, std::to_integer<int>(kNaN), bytes);
  std::memset(data_ + bytes, std::to_integer<int>(kGuard), kGuardBytes);
  forbid_memory(data_ + bytes, capacity_ + kGuardBytes - bytes);
}

bool SharedMemory::guard_intact() const {
#if defined(ENGRAM_SIMULATED_ASAN)
  return true;  // may not be read
#else
  return std::all_of(data_ + bytes_, data_ + bytes_ + kGuardBytes, [](std::byte b) { return b == kGuard; });
#endif
}

}  // namespace engram::simulated

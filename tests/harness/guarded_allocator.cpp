#include "tests/harness/guarded_allocator.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "tests/harness/sanitizers.hpp"

namespace engram::harness {
namespace {

std::size_t guard_bytes() { return address_sanitizer_watches() ? 0 : Allocator::kAlignment; }

// A NaN in every dtype, like the fill, but not the NaN that a kernel is likely to write.
std::vector<unsigned char> guard_pattern() {
  std::vector<unsigned char> pattern(guard_bytes(), 0xff);
  for (std::size_t i = 0; i < pattern.size(); i += 2) pattern[i] = 0xf7;
  return pattern;
}

}  // namespace

void* GuardedAllocator::allocate(std::size_t bytes) {
  auto* begin = static_cast<std::byte*>(backend_->reserve(bytes + 2 * guard_bytes()));
  const std::vector<unsigned char> pattern = guard_pattern();
  const std::vector<unsigned char> filling(bytes, fill_);
  backend_->copy(begin, pattern.data(), guard_bytes(), CopyKind::host_to_device);
  backend_->copy(begin + guard_bytes(), filling.data(), bytes, CopyKind::host_to_device);
  backend_->copy(begin + guard_bytes() + bytes, pattern.data(), guard_bytes(), CopyKind::host_to_device);
  in_use_ += bytes;
  peak_ = std::max(peak_, in_use_);
  ++allocations_;
  blocks_[begin + guard_bytes()] = bytes;
  return begin + guard_bytes();
}

void GuardedAllocator::check_guard(std::byte* guard, const char* side, std::size_t bytes) {
  const std::vector<unsigned char> pattern = guard_pattern();
  std::vector<unsigned char> found(guard_bytes());
  backend_->copy(found.data(), guard, guard_bytes(), CopyKind::device_to_host);
  const auto [wrong, expected] = std::ranges::mismatch(found, pattern);
  if (wrong != found.end())
    faults_.push_back(
        text("something was written ", side, " a block of ", bytes, " bytes, at guard byte ", wrong - found.begin()));
}

void GuardedAllocator::free(void* data, std::size_t bytes) noexcept {
  const auto block = blocks_.find(data);
  if (block == blocks_.end() || block->second != bytes) {
    faults_.push_back(text("a block was given back that was not taken with ", bytes, " bytes"));
    return;
  }
  blocks_.erase(block);
  auto* begin = static_cast<std::byte*>(data);
  check_guard(begin - guard_bytes(), "before", bytes);
  check_guard(begin + bytes, "behind", bytes);
  in_use_ -= bytes;
  backend_->release(begin - guard_bytes());
}

}  // namespace engram::harness

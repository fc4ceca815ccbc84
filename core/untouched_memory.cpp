#include "core/untouched_memory.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "core/error.hpp"

namespace engram {

UntouchedMemory::~UntouchedMemory() {
  for (const auto& [data, bytes] : blocks_) ::munmap(data, bytes);
}

void* UntouchedMemory::take(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>(1, bytes);
  // Pages begin at multiples of at least 4096, which kAlignment divides.
  void* const data = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED)
    throw OutOfMemory(text("memory: to count it the system must have addresses for ", bytes, " bytes (", bytes >> 20,
                           " MiB) more, got none", "\n  ulimit -v and vm.overcommit_memory=2 limit them"));
  blocks_.emplace(data, size);
  return data;
}

bool UntouchedMemory::give_back(void* data) noexcept {
  const auto block = blocks_.find(data);
  if (block == blocks_.end()) return false;
  ::munmap(block->first, block->second);
  blocks_.erase(block);
  return true;
}

}  // namespace engram

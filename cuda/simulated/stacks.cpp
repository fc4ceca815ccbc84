#include "cuda/simulated/stacks.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include "core/error.hpp"

namespace engram::simulated {
namespace {

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Stacks::~Stacks() {
  for (void* mapping : mappings_) munmap(mapping, page_bytes() + kBytes);
}

StackBounds Stacks::at(std::size_t index) {
  while (mappings_.size() <= index) {
    void* mapping = mmap(nullptr, page_bytes() + kBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (mapping == MAP_FAILED)
      throw DeviceError(text("launch: every simulated thread needs a stack of ", kBytes >> 10, " KiB, got none after ",
                             mappings_.size(), "\n  OMP_NUM_THREADS=1 needs the fewest"));
    mprotect(mapping, page_bytes(), PROT_NONE);
    mappings_.push_back(mapping);
  }
  return {static_cast<std::byte*>(mappings_[index]) + page_bytes(), kBytes};
}

}  // namespace engram::simulated

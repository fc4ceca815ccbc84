#pragma once
/// Heap memory of the CPU that counts what is asked of it, for steps 3 to 5.

#include <algorithm>
#include <memory>

#include "core/allocator.hpp"
#include "core/backend.hpp"

namespace engram::tour {

class CountedMemory final : public Allocator {
 public:
  void* allocate(std::size_t bytes) override {
    ++requests;
    live += bytes;
    peak = std::max(peak, live);
    return heap_.allocate(bytes);
  }
  void free(void* data, std::size_t bytes) noexcept override {
    live -= bytes;
    heap_.free(data, bytes);
  }

  int requests = 0;
  std::size_t live = 0;  ///< bytes
  std::size_t peak = 0;  ///< bytes

 private:
  std::unique_ptr<Backend> backend_ = open_backend({DeviceKind::cpu});
  HeapAllocator heap_{*backend_};
};

}  // namespace engram::tour

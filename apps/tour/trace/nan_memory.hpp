#pragma once
/// Memory of a device that is NaN where nobody wrote yet, so that a gradient that was replaced can be told from one
/// that was added to.

#include <cstddef>
#include <limits>
#include <vector>

#include "core/allocator.hpp"
#include "core/backend.hpp"

namespace engram::tour {

class NanMemory final : public Allocator {
 public:
  /// The backend must outlive it and everything allocated from it.
  explicit NanMemory(Backend& backend) : backend_(&backend), heap_(backend) {}

  void* allocate(std::size_t bytes) override {
    const std::size_t whole = (bytes + sizeof(double) - 1) / sizeof(double);
    const std::vector<double> nothing(whole, std::numeric_limits<double>::quiet_NaN());
    void* const data = heap_.allocate(whole * sizeof(double));
    backend_->copy(data, nothing.data(), whole * sizeof(double), CopyKind::host_to_device);
    return data;
  }
  void free(void* data, std::size_t bytes) noexcept override { heap_.free(data, bytes); }

 private:
  Backend* backend_;
  HeapAllocator heap_;
};

}  // namespace engram::tour

#pragma once
/// A heap that knows how much it has given.

#include <atomic>
#include <cstddef>

#include "core/allocator.hpp"

namespace engram {

class CountedHeap final : public Allocator {
 public:
  /// The backend must outlive the heap and everything allocated from it.
  explicit CountedHeap(Backend& backend) : heap_(backend) {}
  void* allocate(std::size_t bytes) override {
    void* const data = heap_.allocate(bytes);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
    return data;
  }
  void free(void* data, std::size_t bytes) noexcept override {
    heap_.free(data, bytes);
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  /// What was asked of it and not given back.
  std::size_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  HeapAllocator heap_;
  std::atomic<std::size_t> bytes_ = 0;
};

}  // namespace engram

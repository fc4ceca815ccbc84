#pragma once
/// Where the memory of tensors comes from.

#include <cstddef>
#include <memory_resource>

namespace engram {

class Allocator {
 public:
  virtual ~Allocator() = default;
  /// Returns at least `bytes` bytes, aligned to kAlignment. Throws DeviceError when there is no memory left.
  virtual void* allocate(std::size_t bytes) = 0;
  /// Takes back what allocate(bytes) returned.
  virtual void free(void* data, std::size_t bytes) noexcept = 0;

  /// Memory for the small host objects that come with tensors and operations: counts of handles, recorded nodes, tables
  /// of one kernel call. An arena recycles them, so that a step like the one before allocates none; others use the
  /// heap. For one thread at a time.
  virtual std::pmr::memory_resource& objects() { return *std::pmr::new_delete_resource(); }

  static constexpr std::size_t kAlignment = 256;
};

class Backend;

/// One exact allocation of the backend per tensor: for long-lived tensors, and for tests, where a sanitizer
/// then sees every access outside of it.
class HeapAllocator final : public Allocator {
 public:
  /// The backend must outlive the allocator and everything allocated from it.
  explicit HeapAllocator(Backend& backend) : backend_(&backend) {}
  void* allocate(std::size_t bytes) override;
  void free(void* data, std::size_t bytes) noexcept override;

 private:
  Backend* backend_;
};

}  // namespace engram

#pragma once
/// Memory for tests: every block is filled before use and fenced by guard words that are checked when it is given
/// back. Under AddressSanitizer the fences are left out, since the sanitizer sees exact blocks more sharply.

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/allocator.hpp"
#include "core/backend.hpp"

namespace engram::harness {

class GuardedAllocator final : public Allocator {
 public:
  /// 0xff: every element is NaN (i32: -1), so that reading unwritten memory shows.
  static constexpr unsigned char kNaNBytes = 0xff;

  /// The backend must outlive it. `fill`: every byte of fresh memory.
  explicit GuardedAllocator(Backend& backend, unsigned char fill = kNaNBytes) : backend_(&backend), fill_(fill) {}

  void* allocate(std::size_t bytes) override;
  void free(void* data, std::size_t bytes) noexcept override;

  std::size_t bytes_in_use() const { return in_use_; }
  std::size_t peak_bytes() const { return peak_; }
  std::size_t allocations() const { return allocations_; }
  /// One line for every block whose guard words were overwritten or that was given back with another size.
  const std::vector<std::string>& faults() const { return faults_; }

 private:
  void check_guard(std::byte* guard, const char* side, std::size_t bytes);

  Backend* backend_;
  unsigned char fill_;
  std::size_t in_use_ = 0;
  std::size_t peak_ = 0;
  std::size_t allocations_ = 0;
  std::map<void*, std::size_t> blocks_;
  std::vector<std::string> faults_;
};

}  // namespace engram::harness

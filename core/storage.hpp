#pragma once
/// The bytes of one allocation, given back to their allocator by the last tensor that holds them.

#include <cstddef>

#include "core/allocator.hpp"

namespace engram {

class Storage {
 public:
  Storage(Allocator& allocator, std::size_t bytes)
      : allocator_(&allocator), data_(allocator.allocate(bytes)), bytes_(bytes) {}
  ~Storage() { allocator_->free(data_, bytes_); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  Allocator* allocator_;
  void* data_;
  std::size_t bytes_;
};

}  // namespace engram

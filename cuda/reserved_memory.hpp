#pragma once
/// How many bytes of a device's memory are in use.

#include <cstddef>
#include <unordered_map>

namespace engram::cuda {

class ReservedMemory {
 public:
  void add(void* data, std::size_t bytes) {
    sizes_[data] = bytes;
    bytes_ += bytes;
  }
  /// Of what add() was called with; nullptr is nothing.
  void remove(void* data) {
    if (data == nullptr) return;
    const auto size = sizes_.find(data);
    bytes_ -= size->second;
    sizes_.erase(size);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
  std::unordered_map<void*, std::size_t> sizes_;
};

}  // namespace engram::cuda

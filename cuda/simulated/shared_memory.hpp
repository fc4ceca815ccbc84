#pragma once
/// The dynamic shared memory of a block: filled with NaN before every block, since a card does not clear it either, and
/// followed by guard bytes.

#include <cstddef>
#include <memory>
#include <new>

namespace engram::simulated {

class SharedMemory {
 public:
  static constexpr std::size_t kAlignment = 1024;  // a card's, where a kernel asks for it (cuda/shared.cuh)
  static constexpr std::size_t kGuardBytes = 64;

  ~SharedMemory();
  SharedMemory() = default;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Fresh contents for a block with `bytes` bytes.
  void begin_block(std::size_t bytes);
  /// Whether the guard behind the block's bytes is as it was. AddressSanitizer reports an overrun where it happens.
  bool guard_intact() const;

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t capacity_ = 0;  // without the guard
};

}  // namespace engram::simulated

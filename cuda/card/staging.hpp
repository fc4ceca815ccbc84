#pragma once
/// Copies from the host to the card that return before the card has them. The bytes wait in page-locked memory, which
/// the card reads by itself; a ring of it is used over and over.

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>

#include "cuda/card/waiting.hpp"

namespace engram::card {

class Staging {
 public:
  /// Both must outlive it. Throws DeviceError when the host has no memory to lock.
  Staging(cudaStream_t stream, const Waiting& waiting);
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  /// In order with the stream. `from` may change as soon as this returns. Waits only where more bytes are on their way
  /// than the ring holds.
  void copy_to_card(void* to, const void* from, std::size_t bytes);

 private:
  struct Piece {
    std::size_t begin = 0, end = 0;  ///< bytes of the ring
    cudaEvent_t sent = nullptr;
  };
  static constexpr std::size_t kBytes = std::size_t{16} << 20;
  static constexpr std::size_t kMostPieces = 64;

  std::size_t take(std::size_t bytes);
  void wait_for_oldest();

  cudaStream_t stream_;
  const Waiting* waiting_;
  std::byte* memory_ = nullptr;
  std::size_t next_ = 0;
  std::array<Piece, kMostPieces> pieces_;  // on their way: `count_` of them from `oldest_` on, around the end
  std::size_t oldest_ = 0, count_ = 0;
};

}  // namespace engram::card

#include "cuda/card/staging.hpp"

#include <algorithm>
#include <cstring>

#include "cuda/card/check.hpp"

namespace engram::card {

Staging::Staging(cudaStream_t stream, const Waiting& waiting) : stream_(stream), waiting_(&waiting) {
  check(cudaMallocHost(reinterpret_cast<void**>(&memory_), kBytes), "page-locked memory of the host");
  for (Piece& piece : pieces_) check(cudaEventCreateWithFlags(&piece.sent, cudaEventDisableTiming), "event");
}

Staging::~Staging() {
  (void)cudaStreamSynchronize(stream_);
  for (const Piece& piece : pieces_) (void)cudaEventDestroy(piece.sent);
  (void)cudaFreeHost(memory_);
}

void Staging::wait_for_oldest() {
  waiting_->wait_for(pieces_[oldest_].sent);
  oldest_ = (oldest_ + 1) % kMostPieces;
  --count_;
}

std::size_t Staging::take(std::size_t bytes) {
  if (next_ + bytes > kBytes) next_ = 0;
  const std::size_t begin = next_, end = begin + bytes;
  const auto in_the_way = [&] {
    for (std::size_t i = 0; i < count_; ++i) {
      const Piece& piece = pieces_[(oldest_ + i) % kMostPieces];
      if (piece.begin < end && begin < piece.end) return true;
    }
    return count_ == kMostPieces;
  };
  while (in_the_way()) wait_for_oldest();
  constexpr std::size_t kAlignment = 256;
  next_ = (end + kAlignment - 1) / kAlignment * kAlignment;
  return begin;
}

void Staging::copy_to_card(void* to, const void* from, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t size = std::min(bytes - done, kBytes / 4), begin = take(size);
    std::memcpy(memory_ + begin, static_cast<const std::byte*>(from) + done, size);
    check(cudaMemcpyAsync(static_cast<std::byte*>(to) + done, memory_ + begin, size, cudaMemcpyHostToDevice, stream_),
          "copy to the card");
    Piece& piece = pieces_[(oldest_ + count_) % kMostPieces];
    piece.begin = begin;
    piece.end = begin + size;
    check(cudaEventRecord(piece.sent, stream_), "copy to the card");
    ++count_;
    done += size;
  }
}

}  // namespace engram::card

#pragma once
/// CRC-32 of IEEE 802.3, as zlib, PNG and gzip have it (polynomial 0xEDB88320, reflected): every language has a
/// function for it. It finds each error of up to 32 bits in a row; it is no defence against forgery. Computed sixteen
/// bytes at a time (M. E. Kounavis, F. L. Berry: "A systematic approach to building high performance software-based
/// CRC generators", ISCC 2005), several times faster than a disk delivers.

#include <cstddef>
#include <cstdint>
#include <span>

namespace engram {

class Crc32 {
 public:
  void add(std::span<const std::byte> bytes);
  /// Of all bytes added so far; 0 for none.
  std::uint32_t value() const { return ~state_; }

 private:
  std::uint32_t state_ = 0xffffffffu;
};

}  // namespace engram

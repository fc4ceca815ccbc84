#pragma once
/// A read-only run of token ids that somebody else owns, in memory or mapped from a file, stored as one, two or four
/// bytes each. It must not outlive its owner.

#include <algorithm>
#include <cstdint>
#include <span>

namespace engram::data {

class TokenView {
 public:
  TokenView() = default;
  /// `width` is 1 or 2 (unsigned) or 4 (signed) bytes per id; `data` holds `count` of them, aligned to `width`.
  TokenView(const void* data, int width, std::int64_t count) : data_(data), width_(width), count_(count) {}
  explicit TokenView(std::span<const std::int32_t> ids)
      : TokenView(ids.data(), 4, static_cast<std::int64_t>(ids.size())) {}

  std::int64_t size() const { return count_; }
  const void* data() const { return data_; }
  int width() const { return width_; }
  /// The first tokens, at most so many; 0: all.
  TokenView beginning(std::int64_t most) const {
    return most > 0 ? TokenView(data_, width_, std::min(most, count_)) : *this;
  }

  std::int32_t operator[](std::int64_t index) const {
    switch (width_) {
      case 1:
        return static_cast<const std::uint8_t*>(data_)[index];
      case 2:
        return static_cast<const std::uint16_t*>(data_)[index];
      default:
        return static_cast<const std::int32_t*>(data_)[index];
    }
  }

  /// Copies ids [first, first + count) to `out`.
  void copy(std::int64_t first, std::int64_t count, std::int32_t* out) const {
    for (std::int64_t i = 0; i < count; ++i) out[i] = (*this)[first + i];
  }

 private:
  const void* data_ = nullptr;
  int width_ = 4;
  std::int64_t count_ = 0;
};

}  // namespace engram::data

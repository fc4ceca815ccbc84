#pragma once
/// One row of a table as the update rules see it: numbers to compute with, whatever is stored.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/stochastic_rounding.hpp"
#include "core/table_clock.hpp"
#include "cpu/philox_lanes.hpp"
#include "cpu/vec.hpp"

namespace engram::cpu {

/// Asks for the memory of a row ahead of its use. Rows lie far apart, and no processor guesses where the next one is.
template <class T>
void prefetch_row(const T* row, std::int64_t width) {
  constexpr std::int64_t kLine = 64;
  const auto* bytes = reinterpret_cast<const char*>(row);
  const auto count = width * static_cast<std::int64_t>(sizeof(T));
  for (std::int64_t at = 0; at < count; at += kLine) __builtin_prefetch(bytes + at, 1);
}

/// Rounds rows of f32 to bf16, stochastically: the bits are those of RandomStream::draw for `step`, many at once.
class RowRounding {
 public:
  RowRounding(const RandomStream& random, std::uint64_t step, std::int64_t width)
      : constants_{0, random.operation, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(random.seed),
                   static_cast<std::uint32_t>(random.seed >> 32)},
        blocks_(width),
        width_(width) {}

  void round(const float* from, std::int64_t row, bf16* to) const {
    constexpr int kVectors = 4;
    constexpr std::int64_t kBatch = kVectors * kPhiloxLanes * DropoutRule::kElementsPerBlock;
    std::uint64_t block = blocks_.first_of(row);
    for (std::int64_t c = 0; c < width_; c += kBatch, block += kVectors * kPhiloxLanes) {
      alignas(64) std::uint64_t words[kBatch / 4];
      alignas(64) std::uint16_t bits[kBatch];
      philox_blocks<kVectors>(constants_, block, words);
      std::memcpy(bits, words, sizeof bits);
      const std::int64_t count = std::min(kBatch, width_ - c);
      for (std::int64_t i = 0; i < count; ++i) to[c + i] = stochastically_rounded(from[c + i], bits[i]);
    }
  }

 private:
  PhiloxConstants constants_;
  RoundingBlocks blocks_;
  std::int64_t width_;
};

/// Columns that several passes over a row find in the first cache.
inline constexpr std::int64_t kRowPiece = 1024;

/// The arithmetic of adam_rows on one row. T: what is computed in.
template <class T>
struct AdamRow {
  T gradient_scale, beta1, rest1, beta2, rest2, epsilon;

  /// g: the row's gradient, or none. decay: what the values lose, as a share.
  void update(const T* g, T step_size, T decay, std::int64_t width, T* p, T* m, T* v) const {
    for (std::int64_t c = 0; c < width; c += kRowPiece) {
      const std::int64_t count = std::min(kRowPiece, width - c);
      auto first = vec(m + c, count);
      auto second = vec(v + c, count);
      if (g != nullptr) {
        const auto gradient = vec(g + c, count) * gradient_scale;
        first = first * beta1 + gradient * rest1;
        second = second * beta2 + gradient.square() * rest2;
      } else {
        first *= beta1;
        second *= beta2;
      }
      move(count, T(1) - decay, step_size, epsilon, p + c, m + c, v + c);
    }
  }
  static void catch_up(const RowCatchUp& by, std::int64_t width, T* p, T* m, T* v) {
    for (std::int64_t c = 0; c < width; c += kRowPiece) {
      const std::int64_t count = std::min(kRowPiece, width - c);
      move(count, static_cast<T>(by.decay), static_cast<T>(by.move), T(0), p + c, m + c, v + c);
      vec(m + c, count) *= static_cast<T>(by.first);
      vec(v + c, count) *= static_cast<T>(by.second);
    }
  }

 private:
  /// p = keep p - size m / (sqrt(v) + epsilon), and no more than keep p where v is 0.
  static void move(std::int64_t count, T keep, T size, T epsilon, T* __restrict p, const T* __restrict m,
                   const T* __restrict v) {
    T below[kRowPiece];
    vec(below, count) = vec(v, count).sqrt() + epsilon;  // here, because a plain loop's root is no vector instruction
    for (std::int64_t i = 0; i < count; ++i) {
      const T step = m[i] * size / below[i];
      p[i] = p[i] * keep - (v[i] == 0 ? T(0) : step);
    }
  }
};

/// A row of values while it is changed: in place, or, for bf16, as f32 that put() rounds.
template <class T>
class RowValues {
 public:
  using Number = Compute<T>;

  /// `scratch`: room for a row, used for bf16 only.
  RowValues(T* table, std::int64_t row, std::int64_t width, Number* scratch)
      : stored_(table + row * width), row_(row), width_(width), numbers_(scratch) {
    if constexpr (std::is_same_v<T, bf16>)
      for (std::int64_t c = 0; c < width; ++c) numbers_[c] = static_cast<float>(stored_[c]);
    else
      numbers_ = stored_;
  }
  Number* numbers() const { return numbers_; }
  void put(const RowRounding& rounding) const {
    if constexpr (std::is_same_v<T, bf16>) rounding.round(numbers_, row_, stored_);
  }

 private:
  T* stored_;
  std::int64_t row_, width_;
  Number* numbers_;
};

}  // namespace engram::cpu

#pragma once
/// One row of a table as the update rules see it: numbers to compute with, whatever is stored.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/dtype.hpp"
#include "core/rules/stochastic_rounding.hpp"
#include "core/rules/table_clock.hpp"
#include "cpu/loop_hints.hpp"
#include "cpu/philox_lanes.hpp"

namespace engram::cpu {

/// Rounds rows of f32 to bf16, stochastically: the bits are those of RandomStream::draw for `step`, many at once.
class RowRounding {
 public:
  RowRounding(const RandomStream& random, std::uint64_t step, const TableColumns& columns)
      : constants_{0, random.operation, static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(random.seed),
                   static_cast<std::uint32_t>(random.seed >> 32)},
        blocks_(columns),
        width_(columns.count) {}

  void round(const float* from, std::int64_t row, bf16* to) const {
    constexpr int kVectors = 4;
    constexpr std::int64_t kBatch = kVectors * kPhiloxLanes * DropoutRule::kElementsPerBlock;
    std::uint64_t block = blocks_.block(row, 0);
    // The first column may lie inside a block, of which those before it are left out.
    for (std::int64_t c = -blocks_.place(0); c < width_; c += kBatch, block += kVectors * kPhiloxLanes) {
      alignas(64) std::uint64_t words[kBatch / 4];
      alignas(64) std::uint16_t bits[kBatch];
      philox_blocks<kVectors>(constants_, block, words);
      std::memcpy(bits, words, sizeof bits);
      const std::int64_t count = std::min(kBatch, width_ - c);
      for (std::int64_t i = std::max<std::int64_t>(0, -c); i < count; ++i)
        to[c + i] = stochastically_rounded(from[c + i], bits[i]);
    }
  }

 private:
  PhiloxConstants constants_;
  RoundingBlocks blocks_;
  std::int64_t width_;
};

/// The arithmetic of adam_rows on one row, one pass over its memory. T: what is computed in. Roots and quotients become
/// vector instructions with the options that CMakeLists.txt gives the source that includes this.
template <class T>
struct AdamRow {
  T gradient_scale, beta1, rest1, beta2, rest2;

  /// p becomes p (1 - decay) - size m / (sqrt(v) + epsilon).
  struct Move {
    T size = 0, epsilon = 0, decay = 0;
  };

  /// The row that is updated after this one, if one is: its lines are asked for on the way. All at once would be more
  /// than a core can wait for, and worse than none. S: what values are stored as.
  template <class S>
  struct Next {
    const S* p = nullptr;
    const T *m = nullptr, *v = nullptr;
  };

  /// g: the row's gradient, or none.
  template <class S>
  void update(const T* g, const Move& by, std::int64_t width, T* p, T* m, T* v, const Next<S>& next) const {
    if (g != nullptr)
      update_with(Given{g, gradient_scale}, by, width, p, m, v, next);
    else
      update_with(None{}, by, width, p, m, v, next);
  }
  static void catch_up(const RowCatchUp& by, std::int64_t width, T* __restrict p, T* __restrict m, T* __restrict v) {
    const T keep = static_cast<T>(by.decay), size = static_cast<T>(by.move);
    const T first = static_cast<T>(by.first), second = static_cast<T>(by.second);
    for (std::int64_t c = 0; c < width; ++c) {
      p[c] = p[c] * keep - move(m[c], v[c], size, T(0));
      m[c] *= first;
      v[c] *= second;
    }
  }

 private:
  struct Given {
    const T* __restrict g;
    T scale;
    T operator()(std::int64_t c) const { return g[c] * scale; }
  };
  struct None {
    T operator()(std::int64_t) const { return 0; }
  };

  template <class Gradient, class S>
  void update_with(const Gradient& gradient, const Move& by, std::int64_t width, T* __restrict p, T* __restrict m,
                   T* __restrict v, const Next<S>& next) const {
    constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T)), kPiece = 4 * kLine;
    const T b1 = beta1, r1 = rest1, b2 = beta2, r2 = rest2;
    const T size = by.size, below = by.epsilon, keep = T(1) - by.decay;
    for (std::int64_t begin = 0; begin < width; begin += kPiece) {
      const std::int64_t end = std::min(width, begin + kPiece);
      for (std::int64_t c = begin; c < end && next.p != nullptr; c += kLine) {
        __builtin_prefetch(next.p + c, 1);
        __builtin_prefetch(next.m + c, 1);
        __builtin_prefetch(next.v + c, 1);
      }
      ENGRAM_INDEPENDENT
      for (std::int64_t c = begin; c < end; ++c) {
        const T g = gradient(c);
        m[c] = m[c] * b1 + g * r1;
        v[c] = v[c] * b2 + g * g * r2;
        p[c] = p[c] * keep - move(m[c], v[c], size, below);
      }
    }
  }
  static T move(T m, T v, T size, T epsilon) {
    const T step = m * size / (std::sqrt(v) + epsilon);
    return v == 0 ? T(0) : step;
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

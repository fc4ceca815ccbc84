#pragma once
/// Products of f32 matrices whose operands are rounded to bf16 (ProductPrecision::bf16). Processors with bf16
/// instructions round while they pack (bf16_product.hpp); others multiply the rounded numbers as f32: the same but for
/// the order of the sums and numbers below 2^-126, slower than products without rounding.

#include <algorithm>
#include <cstddef>
#include <optional>

#include "core/bf16.hpp"
#include "core/step.hpp"
#include "cpu/bf16_product.hpp"
#include "cpu/colliding_rows.hpp"
#include "cpu/gemm.hpp"

namespace engram::cpu {

/// Rows of `length` elements with the values of the nearest bf16 numbers.
inline void round_rows(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t length, float* to,
                       std::int64_t to_stride) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < length; ++i)
      to[row * to_stride + i] = static_cast<float>(bf16(from[row * from_stride + i]));
}

/// Where a product's operands go that are rounded and stay f32: as they lie, rows a little apart.
struct RoundedOperands {
  std::int64_t a_rows, a_length, b_rows, b_length;

  explicit RoundedOperands(const Gemm<float>& g)
      : a_rows(g.transpose_a == Transpose::yes ? g.k : g.m),
        a_length(g.transpose_a == Transpose::yes ? g.m : g.k),
        b_rows(g.transpose_b == Transpose::yes ? g.n : g.k),
        b_length(g.transpose_b == Transpose::yes ? g.k : g.n) {}
  std::int64_t a_size() const { return a_rows * apart(a_length); }
  std::int64_t b_size() const { return b_rows * apart(b_length); }
  /// The product of the rounded operands.
  Gemm<float> product(const Gemm<float>& g, const float* a, const float* b) const {
    Gemm<float> rounded = g;
    rounded.a = a;
    rounded.a_stride = apart(a_length);
    rounded.b = b;
    rounded.b_stride = apart(b_length);
    return rounded;
  }
};

/// What the products of a kernel's threads round their operands in; none when the step multiplies in f32.
class RoundingMemory {
 public:
  /// For products with m, n and k up to these, or up to these in another order in which no other is larger than k.
  RoundingMemory(Step& step, std::int64_t m, std::int64_t n, std::int64_t k, int threads) {
    if (step.products() == ProductPrecision::f32) return;
    constexpr std::size_t kLine = 64;
    // Every side may be the inner one, which is packed in multiples of kTileDepth.
    const auto whole = [](std::int64_t side) { return tiles_of_strip(side) * kTileDepth; };
    const auto packed = static_cast<std::size_t>(packed_size(whole(m), k) + packed_size(whole(n), k)) * sizeof(bf16);
    const auto values = static_cast<std::size_t>((apart(m) + apart(n)) * apart(k)) * sizeof(float);
    size_ = ((multiplies_bf16() ? packed : values) + kLine - 1) / kLine * kLine;
    memory_.emplace(step.memory(), size_ * static_cast<std::size_t>(threads));
  }
  std::size_t bytes_of_thread() const { return size_; }
  /// nullptr: no rounding.
  void* of_thread(int thread) const {
    return memory_ ? memory_->data<std::byte>() + size_ * static_cast<std::size_t>(thread) : nullptr;
  }

 private:
  std::size_t size_ = 0;
  std::optional<Workspace> memory_;
};

/// On the calling thread. With memory for `rounding` (nullptr: none) operands are rounded first; f64 ones never are. A
/// `b` that is packed already (only where multiplies_bf16()) is not packed again.
inline void gemm(const Gemm<float>& g, void* rounding, const PackedB& packed_b = {}) {
  if (rounding == nullptr || g.k == 0) return gemm(g);
  if (multiplies_bf16()) {
    auto* const a = static_cast<bf16*>(rounding);
    const StripRange all{0, strips_of(g.m), 0, strips_of(g.n)};
    pack_a(g, all.a_begin, all.a_end, a);
    if (packed_b) return multiply_strips(g, a, packed_b, all);
    bf16* const b = a + packed_size(g.m, g.k);
    pack_b(g, all.b_begin, all.b_end, b);
    return multiply_strips(g, a, b, all);
  }
  const RoundedOperands operands(g);
  auto* const a = static_cast<float*>(rounding);
  float* const b = a + operands.a_size();
  round_rows(g.a, g.a_stride, operands.a_rows, operands.a_length, a, apart(operands.a_length));
  round_rows(g.b, g.b_stride, operands.b_rows, operands.b_length, b, apart(operands.b_length));
  gemm(operands.product(g, a, b));
}
inline void gemm(const Gemm<double>& g, void*, const PackedB& = {}) { gemm(g); }

}  // namespace engram::cpu

#pragma once
/// Products of f32 matrices whose operands are rounded to bf16 (ProductPrecision::bf16). Processors with bf16
/// instructions multiply bf16 numbers; others get the rounded numbers as f32: the same up to the order of the sums, but
/// slower than products without rounding.

#include <cstddef>
#include <optional>

#include "core/bf16.hpp"
#include "core/step.hpp"
#include "cpu/colliding_rows.hpp"
#include "cpu/gemm.hpp"

namespace engram::cpu {

/// Rounds rows of `length` elements, to bf16 numbers or to f32 numbers with the same values.
template <class Rounded>
void round_rows(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t length, Rounded* to,
                std::int64_t to_stride) {
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t i = 0; i < length; ++i)
      to[row * to_stride + i] = static_cast<Rounded>(bf16(from[row * from_stride + i]));
}

/// A product's operands once they are rounded: as they lie, rows a little apart.
template <class Rounded>
struct RoundedGemm {
  Gemm<Rounded> product;
  std::int64_t a_rows, a_length, b_rows, b_length;

  explicit RoundedGemm(const Gemm<float>& g)
      : product{.transpose_a = g.transpose_a,
                .transpose_b = g.transpose_b,
                .m = g.m,
                .n = g.n,
                .k = g.k,
                .factor = g.factor,
                .write = g.write,
                .c = g.c,
                .c_stride = g.c_stride},
        a_rows(g.transpose_a == Transpose::yes ? g.k : g.m),
        a_length(g.transpose_a == Transpose::yes ? g.m : g.k),
        b_rows(g.transpose_b == Transpose::yes ? g.n : g.k),
        b_length(g.transpose_b == Transpose::yes ? g.k : g.n) {
    product.a_stride = apart(a_length);
    product.b_stride = apart(b_length);
  }
  std::int64_t a_size() const { return a_rows * product.a_stride; }
  std::int64_t b_size() const { return b_rows * product.b_stride; }
};

/// What the products of a kernel's threads round their operands in; none when the step multiplies in f32.
class RoundingMemory {
 public:
  /// For products with m, n and k up to these.
  RoundingMemory(Step& step, std::int64_t m, std::int64_t n, std::int64_t k, int threads) {
    if (step.products() == ProductPrecision::f32) return;
    size_ = static_cast<std::size_t>((apart(m) + apart(n)) * apart(k)) * sizeof(float);
    memory_.emplace(step.memory(), size_ * static_cast<std::size_t>(threads));
  }
  /// nullptr: no rounding.
  void* of_thread(int thread) const {
    return memory_ ? memory_->data<std::byte>() + size_ * static_cast<std::size_t>(thread) : nullptr;
  }

 private:
  std::size_t size_ = 0;
  std::optional<Workspace> memory_;
};

namespace detail {
template <class Rounded>
void rounded_gemm(const Gemm<float>& g, void* memory) {
  RoundedGemm<Rounded> rounded(g);
  auto* const a = static_cast<Rounded*>(memory);
  Rounded* const b = a + rounded.a_size();
  round_rows(g.a, g.a_stride, rounded.a_rows, rounded.a_length, a, rounded.product.a_stride);
  round_rows(g.b, g.b_stride, rounded.b_rows, rounded.b_length, b, rounded.product.b_stride);
  rounded.product.a = a;
  rounded.product.b = b;
  gemm(rounded.product);
}
}  // namespace detail

/// On the calling thread. With memory for `rounding` (nullptr: none) operands are rounded first; f64 ones never are.
inline void gemm(const Gemm<float>& g, void* rounding) {
  if (rounding == nullptr || g.k == 0)
    gemm(g);
  else if (multiplies_bf16())
    detail::rounded_gemm<bf16>(g, rounding);
  else
    detail::rounded_gemm<float>(g, rounding);
}
inline void gemm(const Gemm<double>& g, void*) { gemm(g); }

}  // namespace engram::cpu

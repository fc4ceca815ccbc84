#pragma once
/// Products through kernel slots in f32 and in f64, on numbers whose sums are exact in both: any mistaken element
/// shows.

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "core/kernels/matmul.hpp"
#include "core/kernels/past.hpp"
#include "core/step.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/guarded_allocator.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::harness {

using kernels::Transpose;

/// What random numbers are turned into.
using Grain = std::function<double(double)>;

/// Multiples of 1/8: sums of their products are exact below 2^18.
inline double eighths(double x) { return std::round(8 * x) / 8; }

template <class T>
struct ProductRun {
  GuardedAllocator memory{*available_backends().front()};
  Step step{*available_backends().front(), memory};
  Grain grain = eighths;

  explicit ProductRun(Grain with = eighths, ProductPrecision precision = ProductPrecision::f32)
      : grain(std::move(with)) {
    step.begin({});
    step.set_products(precision);
  }
  /// The same numbers in any dtype. Large tensors repeat them, with a period that no row or block has.
  Tensor numbers(Shape shape, unsigned seed) {
    constexpr std::int64_t kPeriod = 65537;
    Tensor tensor = step.empty(shape, std::is_same_v<T, float> ? DType::f32 : DType::f64);
    reference::RandomArrays random(seed);
    T* const values = tensor.data<T>();
    const std::int64_t count = tensor.count(), drawn = std::min(count, kPeriod);
    for (std::int64_t i = 0; i < drawn; ++i) values[i] = static_cast<T>(grain(random.number()));
    for (std::int64_t i = drawn; i < count; i += kPeriod) std::copy_n(values, std::min(count - i, kPeriod), values + i);
    return tensor;
  }
};

template <class T>
std::vector<double> values_of(const Tensor& tensor) {
  return {tensor.data<T>(), tensor.data<T>() + tensor.count()};
}

struct ProductSizes {
  std::int64_t m, n, k;
  Transpose transpose_a, transpose_b;
  std::int64_t batch = 1;
};

/// 0.5 times a product, set or added to other numbers.
template <class T>
std::vector<double> product(ProductRun<T>& run, const ProductSizes& s, Write write) {
  const bool ta = s.transpose_a == Transpose::yes, tb = s.transpose_b == Transpose::yes;
  const Tensor a = run.numbers(ta ? Shape{s.batch, s.k, s.m} : Shape{s.batch, s.m, s.k}, 1);
  const Tensor b = run.numbers(tb ? Shape{s.batch, s.n, s.k} : Shape{s.batch, s.k, s.n}, 2);
  const Tensor c = run.numbers({s.batch, s.m, s.n}, 3);
  kernels::matmul(run.step, MatrixView::of(a), s.transpose_a, MatrixView::of(b), s.transpose_b, MatrixView::of(c),
                  s.batch, 0.5, write);
  return values_of<T>(c);
}

inline std::vector<double> joined(std::vector<double> first, const std::vector<double>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Projections of a past, keys before values, and gradients of their weights; heads of depth 4.
template <class T>
std::vector<double> past_projection(ProductRun<T>& run, std::int64_t streams, std::int64_t cached, std::int64_t width,
                                    const HeadWindows& windows) {
  const Tensor cache = run.numbers({streams, cached, width}, 4);
  const Shape of_weight{windows.heads() * 4, width}, packed{streams * windows.total, 4};
  Tensor keys = run.numbers(packed, 6), values = run.numbers(packed, 8);
  kernels::project_past_forward(run.step, cache, run.numbers(of_weight, 5), run.numbers(of_weight, 7), windows, keys,
                                values);
  return joined(values_of<T>(keys), values_of<T>(values));
}
template <class T>
std::vector<double> past_gradient(ProductRun<T>& run, std::int64_t streams, std::int64_t cached, std::int64_t width,
                                  const HeadWindows& windows, Write write) {
  const Tensor cache = run.numbers({streams, cached, width}, 4);
  const Shape of_weight{windows.heads() * 4, width}, packed{streams * windows.total, 4};
  const Tensor dkey_weight = run.numbers(of_weight, 6), dvalue_weight = run.numbers(of_weight, 8);
  kernels::project_past_backward(run.step, cache, windows, run.numbers(packed, 5), run.numbers(packed, 7),
                                 {dkey_weight, write}, {dvalue_weight, write});
  return joined(values_of<T>(dkey_weight), values_of<T>(dvalue_weight));
}

inline double worst_difference(const std::vector<double>& x, const std::vector<double>& y) {
  REQUIRE(x.size() == y.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(x[i] - y[i]));
  return worst;
}

}  // namespace engram::harness

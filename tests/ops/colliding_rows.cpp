/// Products whose operands are copied first because their rows collide (cpu/colliding_rows.hpp), against the same
/// products in double precision, which are never copied.

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/kernels/head_windows.hpp"
#include "core/kernels/matmul.hpp"
#include "core/step.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/guarded_allocator.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::harness {
namespace {

using kernels::Transpose;

Backend& cpu() { return *available_backends().front(); }

struct Device {
  GuardedAllocator memory{cpu()};
  Step step{cpu(), memory};
  Device() { step.begin({}); }
};

/// The same small multiples of 1/8 in any dtype.
template <class T>
Tensor numbers(Step& step, Shape shape, unsigned seed) {
  Tensor tensor = step.empty(shape, std::is_same_v<T, float> ? DType::f32 : DType::f64);
  reference::RandomArrays random(seed);
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    tensor.data<T>()[i] = static_cast<T>(std::round(8 * random.number()) / 8);
  return tensor;
}

struct Sizes {
  std::int64_t m, n, k;
  Transpose transpose_a, transpose_b;
};

template <class T>
std::vector<double> product(const Sizes& s, Write write) {
  Device device;
  const bool ta = s.transpose_a == Transpose::yes, tb = s.transpose_b == Transpose::yes;
  const Tensor a = numbers<T>(device.step, ta ? Shape{s.k, s.m} : Shape{s.m, s.k}, 1);
  const Tensor b = numbers<T>(device.step, tb ? Shape{s.n, s.k} : Shape{s.k, s.n}, 2);
  const Tensor c = numbers<T>(device.step, {s.m, s.n}, 3);
  kernels::matmul(device.step, MatrixView::of(a), s.transpose_a, MatrixView::of(b), s.transpose_b, MatrixView::of(c), 1,
                  0.5, write);
  return {c.data<T>(), c.data<T>() + c.count()};
}

double worst_difference(const std::vector<double>& x, const std::vector<double>& y) {
  REQUIRE(x.size() == y.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, std::abs(x[i] - y[i]));
  return worst;
}

// Sums of multiples of 1/64 that stay below 2^24 / 64 are exact in both dtypes: any mistaken element shows.
TEST_CASE("matmul: operands with colliding rows", "[gemm]") {
  constexpr Transpose no = Transpose::no, yes = Transpose::yes;
  const Sizes sizes =
      GENERATE(Sizes{40, 512, 70, no, no}, Sizes{512, 40, 70, yes, no}, Sizes{512, 1024, 33, yes, no},
               Sizes{512, 35, 70, yes, yes},
               // Several pieces of the inner size; too few rows to copy for.
               Sizes{33, 512, 2111, no, no}, Sizes{31, 512, 70, no, no},
               // Rows longer than a copy's: panels of b, of a, and of both.
               Sizes{32, 4352, 300, no, no}, Sizes{4352, 32, 300, yes, no}, Sizes{4352, 4352, 3, yes, no});
  CAPTURE(sizes.m, sizes.n, sizes.k);
  for (const Write write : {Write::set, Write::add})
    CHECK(worst_difference(product<float>(sizes, write), product<double>(sizes, write)) == 0);
}

template <class T>
std::vector<double> past_gradient(std::int64_t streams, std::int64_t cached, std::int64_t width,
                                  const HeadWindows& windows, Write write) {
  constexpr std::int64_t kDepth = 4;
  Device device;
  const Tensor cache = numbers<T>(device.step, {streams, cached, width}, 4);
  const Tensor dy = numbers<T>(device.step, {streams * windows.total, kDepth}, 5);
  Tensor dweight = numbers<T>(device.step, {windows.heads() * kDepth, width}, 6);
  kernels::project_past_backward(device.step, cache, windows, dy, dweight, write);
  return {dweight.data<T>(), dweight.data<T>() + dweight.count()};
}

TEST_CASE("project_past: cached states with colliding rows", "[gemm]") {
  // Windows longer than the cache, than one copy, and empty ones.
  const HeadWindows windows({1300, 0, 700, 512, 3});
  const std::int64_t cached = GENERATE(0, 2, 1100);
  for (const Write write : {Write::set, Write::add})
    CHECK(worst_difference(past_gradient<float>(2, cached, 768, windows, write),
                           past_gradient<double>(2, cached, 768, windows, write)) == 0);
}

}  // namespace
}  // namespace engram::harness

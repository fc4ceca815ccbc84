#include "apps/studies/bench/machine_limits.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "core/allocator.hpp"
#include "core/arena.hpp"
#include "core/error.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/matmul.hpp"
#include "core/kernels/softmax.hpp"
#include "core/step.hpp"

namespace engram {
namespace {

/// Of one call. Where the device works behind the host, of many calls in a row, since handing over a short one takes
/// longer than it runs.
double median_seconds(Backend& backend, int runs, const std::function<void()>& action) {
  constexpr double kLongEnough = 5e-3;
  constexpr int kMostCalls = 100;
  const auto time_of = [&](int calls) {
    const std::unique_ptr<Mark> begin = backend.mark();
    for (int call = 0; call < calls; ++call) action();
    return backend.mark()->seconds_since(*begin) / calls;
  };
  action();  // first use: threads start, memory is mapped, the product's code is made
  const int calls =
      backend.works_behind() ? static_cast<int>(std::clamp(kLongEnough / time_of(1), 1.0, 1.0 * kMostCalls)) : 1;
  std::vector<double> seconds;
  for (int run = 0; run < runs; ++run) seconds.push_back(time_of(calls));
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

/// Numbers of a normal distribution: products of constants heat a chip less, and run faster.
Tensor random_matrix(Step& step, const Shape& shape, DType dtype, std::uint64_t seed) {
  std::mt19937 random(static_cast<std::mt19937::result_type>(seed));
  std::normal_distribution<float> normal;
  std::vector<float> numbers(static_cast<std::size_t>(shape.count()));
  // Drawing all of a large one takes longer than the products do.
  constexpr std::size_t kDrawn = 1 << 20;
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = i < kDrawn ? normal(random) : numbers[i - kDrawn + 1];
  Tensor wide = step.empty(shape, DType::f32);
  step.backend().copy(wide.raw(), numbers.data(), wide.bytes(), CopyKind::host_to_device);
  if (dtype == DType::f32) return wide;
  Tensor narrow = step.empty(shape, dtype);
  kernels::convert(step, wide, narrow);
  return narrow;
}

// Beyond the caches, within them, and as long and narrow as a layer's: which one is fastest depends on the machine.
void measure_products(Step& step, std::int64_t side, ProductPrecision precision, MachineLimits& limits) {
  step.set_products(precision);
  double& fastest = precision == ProductPrecision::bf16 ? limits.bf16_flops_per_second : limits.flops_per_second;
  for (const auto& [rows, columns, inner] :
       {std::array{side, side, side}, std::array{side / 4, side / 4, side / 4}, std::array{side, side / 8, side / 8}}) {
    // A card's operands are bf16 as they are: rounding f32 is another kernel there.
    const DType dtype = precision == ProductPrecision::bf16 && step.backend().works_behind() ? DType::bf16 : DType::f32;
    const Tensor a = random_matrix(step, {rows, inner}, dtype, 1), b = random_matrix(step, {inner, columns}, dtype, 2);
    Tensor c = step.empty({rows, columns}, dtype);
    using kernels::Transpose;
    const double seconds = median_seconds(step.backend(), inner == side ? 5 : 25, [&] {
      kernels::matmul(step, MatrixView::of(a), Transpose::no, MatrixView::of(b), Transpose::no, MatrixView::of(c), 1,
                      1.0, Write::set);
    });
    const double flops = 2.0 * static_cast<double>(rows * columns * inner);
    limits.products.push_back({precision, rows, columns, inner, flops / seconds});
    fastest = std::max(fastest, flops / seconds);
  }
  step.set_products(ProductPrecision::f32);
}

void check_side(std::int64_t side) {
  if (side < 16) throw UsageError(text("bench: --product-size must be at least 16, got ", side));
}

}  // namespace

double copy_rate(Backend& backend, std::int64_t side) {
  check_side(side);
  HeapAllocator heap(backend);
  Step step(backend, heap);
  step.begin({});
  Tensor from = step.empty({4 * side * side}, DType::f32), to = step.empty({4 * side * side}, DType::f32);
  kernels::fill(step, from, 1.0);
  const double seconds = median_seconds(backend, 7, [&] { kernels::accumulate(step, from, 1.0, {to, Write::set}); });
  return 2.0 * static_cast<double>(from.bytes()) / seconds;
}

MachineLimits MachineLimits::with(ProductPrecision precision) const {
  MachineLimits limits = *this;
  if (precision == ProductPrecision::bf16 && bf16_flops_per_second > 0) limits.flops_per_second = bf16_flops_per_second;
  return limits;
}

MachineLimits measure_limits(Backend& backend, std::int64_t side) {
  check_side(side);
  HeapAllocator heap(backend);
  Arena memory(heap);  // what a product takes is there at its second call, as in a step
  Step step(backend, memory);
  step.begin({});
  MachineLimits limits;
  for (const ProductPrecision precision : {ProductPrecision::f32, ProductPrecision::bf16})
    if (precision == ProductPrecision::f32 || backend.multiplies_bf16())
      measure_products(step, side, precision, limits);
  limits.bytes_per_second = copy_rate(backend, side);
  limits.exponentials_per_second = backend.exponentials_per_second();
  if (limits.exponentials_per_second > 0) return limits;
  Tensor x = step.empty({256, 1024}, DType::f32), y = step.empty({256, 1024}, DType::f32);
  kernels::fill(step, x, 0.5);
  const double seconds = median_seconds(backend, 51, [&] { kernels::softmax_forward(step, x, y); });
  limits.exponentials_per_second = static_cast<double>(x.count()) / seconds;
  return limits;
}

}  // namespace engram

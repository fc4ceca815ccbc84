#include "apps/studies/bench/machine_limits.hpp"

#include <algorithm>
#include <array>
#include <functional>

#include "core/allocator.hpp"
#include "core/error.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/matmul.hpp"
#include "core/kernels/softmax.hpp"
#include "core/step.hpp"
#include "core/stopwatch.hpp"

namespace engram {
namespace {

double median_seconds(Backend& backend, int runs, const std::function<void()>& action) {
  std::vector<double> seconds;
  action();  // first use: threads start, memory is mapped, the product's code is made
  for (int run = 0; run < runs; ++run) {
    backend.synchronize();
    const Stopwatch watch;
    action();
    backend.synchronize();
    seconds.push_back(watch.seconds());
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

// Beyond the caches, within them, and as long and narrow as a layer's: which one is fastest depends on the machine.
void measure_products(Step& step, std::int64_t side, ProductPrecision precision, MachineLimits& limits) {
  step.set_products(precision);
  double& fastest = precision == ProductPrecision::bf16 ? limits.bf16_flops_per_second : limits.flops_per_second;
  for (const auto& [rows, columns, inner] :
       {std::array{side, side, side}, std::array{side / 4, side / 4, side / 4}, std::array{side, side / 8, side / 8}}) {
    Tensor a = step.empty({rows, inner}, DType::f32), b = step.empty({inner, columns}, DType::f32);
    Tensor c = step.empty({rows, columns}, DType::f32);
    kernels::fill(step, a, 0.5);
    kernels::fill(step, b, 0.25);
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
  Step step(backend, heap);
  step.begin({});
  MachineLimits limits;
  for (const ProductPrecision precision : {ProductPrecision::f32, ProductPrecision::bf16})
    if (precision == ProductPrecision::f32 || backend.multiplies_bf16())
      measure_products(step, side, precision, limits);
  limits.bytes_per_second = copy_rate(backend, side);
  Tensor x = step.empty({256, 1024}, DType::f32), y = step.empty({256, 1024}, DType::f32);
  kernels::fill(step, x, 0.5);
  const double seconds = median_seconds(backend, 51, [&] { kernels::softmax_forward(step, x, y); });
  limits.exponentials_per_second = static_cast<double>(x.count()) / seconds;
  return limits;
}

}  // namespace engram

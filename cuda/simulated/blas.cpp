#include "cuda/blas.hpp"

#include <span>
#include <type_traits>

#include "core/error.hpp"
#include "cuda/simulated/backend.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {
namespace {

template <class T>
double number(T x) {
  if constexpr (std::is_same_v<T, bf16>)
    return static_cast<float>(x);
  else
    return x;
}
template <class T>
T from_number(double x) {
  if constexpr (std::is_same_v<T, bf16>)
    return bf16(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

/// Element (row, column) of op(x_i).
template <class T>
double element(const Operand<T>& x, std::int64_t i, std::int64_t row, std::int64_t column) {
  const T* matrix = x.data + i * x.batch_stride;
  return number(x.transposed ? matrix[column * x.row_stride + row] : matrix[row * x.row_stride + column]);
}

/// Every element is one sum in order of k, in double, so threads change nothing.
template <class T, class Out>
void multiply_matrices(const Product<T, Out>& p, std::int64_t i, Write write) {
  Out* c = p.c + i * p.batch_stride;
#pragma omp parallel for if (p.m * p.n * p.k > 65536)
  for (std::int64_t row = 0; row < p.m; ++row)
    for (std::int64_t column = 0; column < p.n; ++column) {
      double sum = 0;
      for (std::int64_t k = 0; k < p.k; ++k) sum += element(p.a, i, row, k) * element(p.b, i, k, column);
      Out& to = c[row * p.row_stride + column];
      const double value = p.factor * sum;
      to = from_number<Out>(write == Write::add ? number(to) + value : value);
    }
}

/// In the place of the product where results mean nothing: selections among scores then meet what they usually do.
/// What is too large for a selection stays as it is.
template <class T, class Out>
void write_random(const Product<T, Out>& p) {
  constexpr std::int64_t kMost = std::int64_t{1} << 26;
  if constexpr (std::is_same_v<Out, float>) {
    const std::int64_t matrices = p.batch_stride == 0 ? 1 : p.batch;
    if (matrices * p.m * p.n > kMost) return;
    std::uint64_t state = 1;
    for (std::int64_t i = 0; i < matrices; ++i)
      for (std::int64_t row = 0; row < p.m; ++row)
        for (std::int64_t column = 0; column < p.n; ++column) {
          state = state * 6364136223846793005 + 1442695040888963407;
          p.c[i * p.batch_stride + row * p.row_stride + column] =
              static_cast<float>(static_cast<std::int64_t>(state) >> 32) * 0x1p-31f;
        }
  }
}

/// What a cost report says of it: the library's own kernels are not ours to count, so each number is moved once.
template <class T, class Out>
LaunchCost cost_of(const Product<T, Out>& p) {
  const auto bytes = [](std::int64_t numbers, std::size_t each) { return numbers * static_cast<std::int64_t>(each); };
  const std::int64_t lefts = p.a.batch_stride == 0 ? 1 : p.batch, rights = p.b.batch_stride == 0 ? 1 : p.batch;
  const std::int64_t results = bytes((p.batch_stride == 0 ? 1 : p.batch) * p.m * p.n, sizeof(Out));
  const double flops = 2.0 * static_cast<double>(p.m * p.n) * static_cast<double>(p.k * p.batch);
  LaunchCost cost{.place = "product", .launches = 1};
  cost.distinct_read_bytes = bytes(lefts * p.m * p.k + rights * p.k * p.n, sizeof(T));
  if (p.write == Write::add) cost.distinct_read_bytes += results;
  cost.distinct_written_bytes = results;
  (std::is_same_v<T, bf16> ? cost.bf16_product_flops : cost.product_flops) = flops;
  return cost;
}

/// What cublasLtMatrixLayoutCreate and cublasLtMatmul refuse on a card: rows that overlap, and numbers that lie across
/// their own size.
template <class T>
void check_matrix(const char* name, const T* data, std::int64_t columns, std::int64_t row_stride) {
  if (row_stride < columns)
    throw DeviceError(text("matmul: rows of ", name, " must be at least as far apart as they are long, got ", columns,
                           " numbers every ", row_stride));
  if (reinterpret_cast<std::uintptr_t>(data) % sizeof(T) != 0)
    throw DeviceError(text("matmul: ", name, " must be aligned to its numbers of ", sizeof(T), " bytes, got address ",
                           static_cast<const void*>(data)));
}
template <class T, class Out>
void check_as_library(const Product<T, Out>& p) {
  if (p.m == 0 || p.n == 0 || p.batch == 0 || p.k == 0) return;  // never come to the library
  check_matrix("the left operand", p.a.data, p.a.transposed ? p.m : p.k, p.a.row_stride);
  check_matrix("the right operand", p.b.data, p.b.transposed ? p.k : p.n, p.b.row_stride);
  check_matrix("the product", p.c, p.n, p.row_stride);
}

template <class T, class Out>
void multiply_in_order(Step& step, const Product<T, Out>& product) {
  if (!step.computes()) return;
  check_as_library(product);
  simulated::Engine& engine = simulated::engine_of(step.backend());
  const auto work = [&engine, product] {
    if (engine.costs.idle()) return;
    if (engine.costs.wanted()) engine.costs.add(cost_of(product));
    if (engine.costs.samples()) return write_random(product);
    for (std::int64_t i = 0; i < product.batch; ++i)
      multiply_matrices(product, i, i > 0 && product.batch_stride == 0 ? Write::add : product.write);
  };
  engine.start(work, std::as_bytes(std::span(&product, 1)));
}

}  // namespace

void multiply_exactly(Step& step, const Product<float>& product) { multiply_in_order(step, product); }
void multiply(Step& step, const Product<double>& product) { multiply_in_order(step, product); }
void multiply(Step& step, const Product<bf16, float>& product) { multiply_in_order(step, product); }
void multiply(Step& step, const Product<bf16>& product) { multiply_in_order(step, product); }

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

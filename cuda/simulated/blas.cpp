#include "cuda/blas.hpp"

#include <type_traits>

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

template <class T, class Out>
void multiply_in_order(Step& step, const Product<T, Out>& product) {
  if (!step.computes()) return;
  simulated::engine_of(step.backend()).start([product] {
    for (std::int64_t i = 0; i < product.batch; ++i)
      multiply_matrices(product, i, i > 0 && product.batch_stride == 0 ? Write::add : product.write);
  });
}

}  // namespace

void multiply_exactly(Step& step, const Product<float>& product) { multiply_in_order(step, product); }
void multiply(Step& step, const Product<double>& product) { multiply_in_order(step, product); }
void multiply(Step& step, const Product<bf16, float>& product) { multiply_in_order(step, product); }
void multiply(Step& step, const Product<bf16>& product) { multiply_in_order(step, product); }

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

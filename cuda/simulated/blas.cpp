#include "cuda/blas.hpp"

#include <type_traits>

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

/// Element (row, column) of op(x_i), as a number of `Rounded`.
template <class Rounded, class T>
double element(const Operand<T>& x, std::int64_t i, std::int64_t row, std::int64_t column) {
  const T* matrix = x.data + i * x.batch_stride;
  const double value = number(x.transposed ? matrix[column * x.row_stride + row] : matrix[row * x.row_stride + column]);
  return number(from_number<Rounded>(value));
}

/// Every element is one sum in order of k, in double, so threads change nothing.
template <class Rounded, class T, class Out>
void multiply_matrices(const Product<T, Out>& p, std::int64_t i, Write write) {
  Out* c = p.c + i * p.batch_stride;
#pragma omp parallel for if (p.m * p.n * p.k > 65536)
  for (std::int64_t row = 0; row < p.m; ++row)
    for (std::int64_t column = 0; column < p.n; ++column) {
      double sum = 0;
      for (std::int64_t k = 0; k < p.k; ++k)
        sum += element<Rounded>(p.a, i, row, k) * element<Rounded>(p.b, i, k, column);
      Out& to = c[row * p.row_stride + column];
      const double value = p.factor * sum;
      to = from_number<Out>(write == Write::add ? number(to) + value : value);
    }
}

template <class Rounded, class T, class Out>
void multiply_batch(const Product<T, Out>& product) {
  for (std::int64_t i = 0; i < product.batch; ++i)
    multiply_matrices<Rounded>(product, i, i > 0 && product.batch_stride == 0 ? Write::add : product.write);
}

}  // namespace

void multiply(Step& step, const Product<float>& product) {
  if (step.products() == ProductPrecision::bf16)
    multiply_batch<bf16>(product);
  else
    multiply_batch<float>(product);
}
void multiply(Step&, const Product<double>& product) { multiply_batch<double>(product); }
void multiply(Step&, const Product<bf16, float>& product) { multiply_batch<bf16>(product); }
void multiply(Step&, const Product<bf16>& product) { multiply_batch<bf16>(product); }

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

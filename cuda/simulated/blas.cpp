#include "cuda/blas.hpp"

#include "core/error.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {
namespace {

/// Element (row, column) of op(x_i).
template <class T>
double element(const Operand<T>& x, std::int64_t i, std::int64_t row, std::int64_t column) {
  const T* matrix = x.data + i * x.batch_stride;
  return static_cast<double>(x.transposed ? matrix[column * x.row_stride + row] : matrix[row * x.row_stride + column]);
}

/// Every element is one sum in order of k, in double, so threads change nothing.
template <class T>
void multiply_matrices(const Product<T>& p, std::int64_t i, Write write) {
  T* c = p.c + i * p.batch_stride;
#pragma omp parallel for if (p.m * p.n * p.k > 65536)
  for (std::int64_t row = 0; row < p.m; ++row)
    for (std::int64_t column = 0; column < p.n; ++column) {
      double sum = 0;
      for (std::int64_t k = 0; k < p.k; ++k) sum += element(p.a, i, row, k) * element(p.b, i, k, column);
      T& to = c[row * p.row_stride + column];
      const T value = static_cast<T>(static_cast<double>(p.factor) * sum);
      to = write == Write::add ? to + value : value;
    }
}

template <class T>
void multiply_batch(const Product<T>& product) {
  for (std::int64_t i = 0; i < product.batch; ++i)
    multiply_matrices(product, i, i > 0 && product.batch_stride == 0 ? Write::add : product.write);
}

}  // namespace

void multiply(Step& step, const Product<float>& product) {
  if (step.products() != ProductPrecision::f32)
    throw NotAvailable(text("matmul: on ", step.device(), " products of operands rounded to bf16 are to come",
                            "\n  training.products = f32, or --device cpu"));
  multiply_batch(product);
}
void multiply(Step&, const Product<double>& product) { multiply_batch(product); }

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

#pragma once
/// Matrix products, the one thing that kernels leave to a library: cuBLAS on cards, plain loops on the simulated device
/// (cuda/simulated/blas.cpp), which exist to be right, not fast.

#include <cstdint>

#include "core/kernels/matmul.hpp"
#include "cuda/device_namespace.hpp"

namespace engram::cuda {
inline namespace ENGRAM_CUDA_DEVICE {

/// A row-major operand; strides count elements.
template <class T>
struct Operand {
  const T* data = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t batch_stride = 0;
  bool transposed = false;
};

/// c_i[m, n] (set or add) factor op(a_i)[m, k] op(b_i)[k, n] for i < batch; with k == 0 the product is zero. When
/// batch_stride of c is 0, the products are added up in order of i.
template <class T, class Out = T>
struct Product {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;
  double factor = 1;
  Operand<T> a, b;
  Write write = Write::set;
  Out* c = nullptr;
  std::int64_t row_stride = 0;
  std::int64_t batch_stride = 0;
};

/// With ProductPrecision::bf16 the operands are rounded to bf16 first (cuda/rounded_product.cu).
void multiply(Step& step, const Product<float>& product);
/// They are not.
void multiply_exactly(Step& step, const Product<float>& product);
void multiply(Step& step, const Product<double>& product);
/// Sums in f32.
void multiply(Step& step, const Product<bf16, float>& product);
void multiply(Step& step, const Product<bf16>& product);

}  // namespace ENGRAM_CUDA_DEVICE
}  // namespace engram::cuda

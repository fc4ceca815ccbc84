#include "core/kernels/matmul.hpp"

#include "cuda/blas.hpp"

namespace engram::cuda::matmul_kernels {
namespace {

using kernels::Transpose;

template <class T>
Operand<T> operand(const MatrixView& view, Transpose transpose) {
  return {view.data<const T>(), view.row_stride, view.batch_stride, transpose == Transpose::yes};
}

template <class T, class Out>
void multiply_views(Step& step, const MatrixView& a, Transpose transpose_a, const MatrixView& b, Transpose transpose_b,
                    const MatrixView& c, std::int64_t batch, double factor, Write write) {
  multiply(step, Product<T, Out>{.m = c.rows,
                                 .n = c.columns,
                                 .k = transpose_a == Transpose::yes ? a.rows : a.columns,
                                 .batch = batch,
                                 .factor = factor,
                                 .a = operand<T>(a, transpose_a),
                                 .b = operand<T>(b, transpose_b),
                                 .write = write,
                                 .c = c.data<Out>(),
                                 .row_stride = c.row_stride,
                                 .batch_stride = c.batch_stride});
}

void matmul(Step& step, const MatrixView& a, Transpose transpose_a, const MatrixView& b, Transpose transpose_b,
            const MatrixView& c, std::int64_t batch, double factor, Write write) {
  if (a.tensor.dtype() == DType::bf16 && c.tensor.dtype() == DType::f32)
    return multiply_views<bf16, float>(step, a, transpose_a, b, transpose_b, c, batch, factor, write);
  dispatch_storage(c.tensor.dtype(), "matmul", [&]<class T>() {
    multiply_views<T, T>(step, a, transpose_a, b, transpose_b, c, batch, factor, write);
  });
}

const bool bound = kernels::matmul.bind(kThisDevice, &matmul);

}  // namespace
}  // namespace engram::cuda::matmul_kernels

#include "core/kernels/matmul.hpp"

#include "cuda/blas.hpp"

namespace engram::cuda {
namespace {

using kernels::Transpose;

template <class T>
Operand<T> operand(const MatrixView& view, Transpose transpose) {
  return {view.data<const T>(), view.row_stride, view.batch_stride, transpose == Transpose::yes};
}

void matmul(Step& step, const MatrixView& a, Transpose transpose_a, const MatrixView& b, Transpose transpose_b,
            const MatrixView& c, std::int64_t batch, double factor, Write write) {
  dispatch_float(c.tensor.dtype(), "matmul", [&]<class T>() {
    multiply(step, Product<T>{.m = c.rows,
                              .n = c.columns,
                              .k = transpose_a == Transpose::yes ? a.rows : a.columns,
                              .batch = batch,
                              .factor = factor,
                              .a = operand<T>(a, transpose_a),
                              .b = operand<T>(b, transpose_b),
                              .write = write,
                              .c = c.data<T>(),
                              .row_stride = c.row_stride,
                              .batch_stride = c.batch_stride});
  });
}

const bool bound = kernels::matmul.bind(kThisDevice, &matmul);

}  // namespace
}  // namespace engram::cuda

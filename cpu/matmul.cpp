#include "core/kernels/matmul.hpp"

#include "cpu/gemm.hpp"
#include "cpu/parallel.hpp"

namespace engram::cpu {
namespace {

void matmul(Step&, const MatrixView& a, Transpose transpose_a, const MatrixView& b, Transpose transpose_b,
            const MatrixView& c, std::int64_t batch, double factor, Write write) {
  dispatch_float(c.tensor.dtype(), "matmul", [&]<class T>() {
    const auto product = [&](std::int64_t index) {
      return Gemm<T>{.transpose_a = transpose_a,
                     .transpose_b = transpose_b,
                     .m = c.rows,
                     .n = c.columns,
                     .k = transpose_a == Transpose::yes ? a.rows : a.columns,
                     .factor = static_cast<T>(factor),
                     .a = a.data<const T>(index),
                     .a_stride = a.row_stride,
                     .b = b.data<const T>(index),
                     .b_stride = b.row_stride,
                     .write = write,
                     .c = c.data<T>(index),
                     .c_stride = c.row_stride};
    };
    // Many small products: one per thread. Few, or all into one result: each one on all threads, in order.
    if (batch >= 8 && c.batch_stride != 0) {
      parallel_items(batch, [&](std::int64_t index) { gemm(product(index)); });
      return;
    }
    for (std::int64_t index = 0; index < batch; ++index) {
      Gemm<T> next = product(index);
      if (index > 0 && c.batch_stride == 0) next.write = Write::add;
      parallel_gemm(next);
    }
  });
}

const bool bound = kernels::matmul.bind(DeviceKind::cpu, &matmul);

}  // namespace
}  // namespace engram::cpu

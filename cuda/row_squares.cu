// Norms of the gradients of tables' rows: core/kernels/row_optimizer.hpp.

#include "cuda/row_squares.cuh"

#include "core/kernels/row_optimizer.hpp"
#include "cuda/ordered_sum.cuh"

namespace engram::cuda::row_squares_kernels {
namespace {

template <int kWidth, class C>
__global__ void __launch_bounds__(kWarpLanes* kRowWarps)
    square_rows(GradientRows<C> gradients, const double* scale, TableColumns columns, double* squares) {
  const std::int64_t u = warp_number();
  if (u >= gradients.capacity) return;
  double sum = 0;
  if (u < gradients.count[0]) sum = squares_of_row<kWidth>(gradients, u, static_cast<C>(scale[0]), columns);
  if (threadIdx.x == 0) squares[u] = sum;
}

void row_squares(Step& step, const RowGradients& gradients, const Tensor& gradient_scale, TableColumns columns,
                 Tensor& squares) {
  const DType dtype = gradients.sums ? gradients.sums.dtype() : gradients.uses.weights.dtype();
  dispatch_float(dtype, "row_squares", [&]<class C>() {
    const Numbers<C> pieces(step, gradient_numbers(gradients));
    const GradientRows<C> read = read_gradients<C>(step, gradients, columns.count, pieces.data());
    const auto* scale = gradient_scale.data<const double>();
    // In the same lanes for both forms, so that the bits are.
    if (squares_in_packs<C, kPackWidth<C>>(gradients, columns))
      launch(step, warps_for(read.capacity), &square_rows<kPackWidth<C>, C>, read, scale, columns,
             squares.data<double>());
    else
      launch(step, warps_for(read.capacity), &square_rows<1, C>, read, scale, columns, squares.data<double>());
  });
}

struct Partial {
  const double* squares;
  __device__ double operator()(std::int64_t i) const { return squares[i]; }
};
struct StoreSum {
  double* to;
  __device__ void operator()(double sum) const { to[0] = sum; }
};

void row_squared_norm(Step& step, const Tensor& squares, Tensor& squared_norm) {
  const double* each = squares ? squares.data<const double>() : nullptr;
  ordered_sum(step, squares ? squares.count() : 0, Partial{each}, StoreSum{squared_norm.data<double>()});
}

const bool bound = kernels::row_squares.bind(kThisDevice, &row_squares) &&
                   kernels::row_squared_norm.bind(kThisDevice, &row_squared_norm);

}  // namespace
}  // namespace engram::cuda::row_squares_kernels

#include "core/kernels/window_rows.hpp"

#include "cuda/elements.cuh"
#include "cuda/window_places.cuh"
#include "cuda/window_products.cuh"
#include "cuda/window_softmax.cuh"

namespace engram::cuda::window_rows_kernels {
namespace {

/// What the sums read; null pointers for what one of them does not have.
template <class T>
struct Windowed {
  using C = Compute<T>;
  const C* weights;
  const T* rows;
  const T* position_rows;
  const T* dy;
  const std::int32_t* preceding;
  WindowRule rule;
  std::int64_t width;
};

template <class T>
__global__ void __launch_bounds__(kWindowColumns) sum_window(Windowed<T> in, TargetElements<T> y) {
  using C = Compute<T>;
  const std::int64_t place = blockIdx.x, i = window_column();
  if (i >= in.width) return;
  const std::int64_t b = place / in.rule.block, t = place % in.rule.block;
  const std::int64_t seen = in.rule.seen(t, in.preceding[place]);
  const T* row = in.rows + (b * in.rule.rows() + in.rule.end(t) - seen) * in.width + i;
  const C* weights = in.weights + (place + 1) * in.rule.window - seen;
  const T* position = in.position_rows + (in.rule.window - seen) * in.width + i;
  C sum = 0;
  for (std::int64_t j = 0; j < seen; ++j) {
    C value = number(row + j * in.width);
    if (in.position_rows != nullptr) value += number(position + j * in.width);
    sum += weights[j] * value;
  }
  write_pack(y, place * in.width + i, Pack<C, 1>{{sum}});
}

void window_sums(Step& step, const Tensor& weights, const Tensor& rows, const Tensor& position_rows,
                 const Tensor& preceding, const WindowRule& rule, const Target& y) {
  dispatch_storage(rows.dtype(), "window_sums", [&]<class T>() {
    const std::int64_t width = y.tensor.shape()[2], positions = y.tensor.shape()[0] * rule.block;
    const Windowed<T> in{weights.data<const Compute<T>>(),
                         rows.data<const T>(),
                         position_rows ? position_rows.data<const T>() : nullptr,
                         nullptr,
                         preceding.data<const std::int32_t>(),
                         rule,
                         width};
    launch(step, column_for_each_thread(positions, width), sum_window<T>, in, y);
  });
}

template <class T>
__global__ void __launch_bounds__(kWindowColumns) gather_window(Windowed<T> in, TargetElements<T> drows) {
  using C = Compute<T>;
  const std::int64_t place = blockIdx.x, i = window_column();
  if (i >= in.width) return;
  const std::int64_t b = place / in.rule.rows(), row = place % in.rule.rows();
  C sum = 0;
  for (std::int64_t t = in.rule.first_reader(row); t < in.rule.end_of_readers(row); ++t) {
    const std::int64_t reader = b * in.rule.block + t;
    if (row < in.rule.end(t) - in.rule.seen(t, in.preceding[reader])) continue;
    sum += in.weights[reader * in.rule.window + in.rule.column(t, row)] * number(in.dy + reader * in.width + i);
  }
  write_pack(drows, place * in.width + i, Pack<C, 1>{{sum}});
}

void window_row_gradients(Step& step, const Tensor& weights, const Tensor& dy, const Tensor& preceding,
                          const WindowRule& rule, const Target& drows) {
  dispatch_storage(dy.dtype(), "window_row_gradients", [&]<class T>() {
    const std::int64_t width = dy.shape()[2], rows = dy.shape()[0] * rule.rows();
    const Windowed<T> in{weights.data<const Compute<T>>(),     nullptr, nullptr, dy.data<const T>(),
                         preceding.data<const std::int32_t>(), rule,    width};
    launch(step, column_for_each_thread(rows, width), gather_window<T>, in, drows);
  });
}

template <class T>
__global__ void __launch_bounds__(kWarpLanes* kRowWarps)
    score_gradients(WindowProducts<T> products, const Compute<T>* weights, Compute<T>* dscores) {
  const std::int64_t place = window_position(), window = products.rule.window;
  if (place >= products.positions) return;
  const std::int64_t seen = products.write(place, dscores + place * window);
  window_softmax_gradient(weights + place * window, dscores + place * window, window,
                          counted_columns(products.rule, seen));
}

void window_score_gradients(Step& step, const Tensor& weights, const Tensor& rows, const Tensor& position_rows,
                            const Tensor& dy, const Tensor& preceding, const WindowRule& rule, Tensor& dscores) {
  dispatch_storage(dy.dtype(), "window_score_gradients", [&]<class T>() {
    using C = Compute<T>;
    const WindowProducts<T> products(rows, position_rows, dy, preceding, rule);
    launch(step, warp_for_each_position(products.positions), score_gradients<T>, products, weights.data<const C>(),
           dscores.data<C>());
  });
}

const bool bound = kernels::window_sums.bind(kThisDevice, &window_sums) &&
                   kernels::window_row_gradients.bind(kThisDevice, &window_row_gradients) &&
                   kernels::window_score_gradients.bind(kThisDevice, &window_score_gradients);

}  // namespace
}  // namespace engram::cuda::window_rows_kernels

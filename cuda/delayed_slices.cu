#include "core/kernels/delayed_slices.hpp"

#include "cuda/elements.cuh"
#include "cuda/window_places.cuh"

namespace engram::cuda::delayed_slices_kernels {
namespace {

template <class T>
__global__ void __launch_bounds__(kWindowColumns)
    read_delayed(const T* x, const std::int32_t* preceding, WindowRule rule, std::int64_t width, T* y) {
  const std::int64_t place = blockIdx.x, i = window_column();
  if (i >= width) return;
  const std::int64_t b = place / rule.block, t = place % rule.block, s = i / (width / rule.window);
  Pack<Compute<T>, 1> value{{0}};
  if (s < rule.seen(t, preceding[place])) value = load<1>(x + (b * rule.rows() + rule.carried + t - s) * width + i);
  store(y + place * width + i, value);
}

void delayed_slices_forward(Step& step, const Tensor& x, const Tensor& preceding, const WindowRule& rule, Tensor& y) {
  dispatch_storage(x.dtype(), "delayed_slices", [&]<class T>() {
    const std::int64_t width = x.shape()[2];
    launch(step, column_for_each_thread(x.shape()[0] * rule.block, width), read_delayed<T>, x.data<const T>(),
           preceding.data<const std::int32_t>(), rule, width, y.data<T>());
  });
}

template <class T>
__global__ void __launch_bounds__(kWindowColumns)
    hand_back_delayed(const T* dy, const std::int32_t* preceding, WindowRule rule, std::int64_t width,
                      TargetElements<T> dx) {
  const std::int64_t place = blockIdx.x, i = window_column();
  if (i >= width) return;
  const std::int64_t b = place / rule.rows(), row = place % rule.rows(), s = i / (width / rule.window);
  const std::int64_t t = row - rule.carried + s, reader = b * rule.block + t;
  const bool was_read = t >= 0 && t < rule.block && s < rule.seen(t, preceding[reader]);
  if (!was_read && dx.write == Write::add) return;
  Pack<Compute<T>, 1> value{{0}};
  if (was_read) value = load<1>(dy + reader * width + i);
  write_pack(dx, place * width + i, value);
}

void delayed_slices_backward(Step& step, const Tensor& dy, const Tensor& preceding, const WindowRule& rule,
                             const Target& dx) {
  dispatch_storage(dy.dtype(), "delayed_slices", [&]<class T>() {
    const std::int64_t width = dy.shape()[2];
    launch(step, column_for_each_thread(dy.shape()[0] * rule.rows(), width), hand_back_delayed<T>, dy.data<const T>(),
           preceding.data<const std::int32_t>(), rule, width, dx);
  });
}

const bool bound = kernels::delayed_slices_forward.bind(kThisDevice, &delayed_slices_forward) &&
                   kernels::delayed_slices_backward.bind(kThisDevice, &delayed_slices_backward);

}  // namespace
}  // namespace engram::cuda::delayed_slices_kernels

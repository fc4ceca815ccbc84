#include "core/kernels/window_attention_dot.hpp"

#include "cuda/window_products.cuh"
#include "cuda/window_softmax.cuh"

namespace engram::cuda::window_attention_dot_kernels {
namespace {

template <class T>
__global__ void __launch_bounds__(kWarpLanes* kRowWarps) dot_weights(WindowProducts<T> products, Compute<T>* weights) {
  const std::int64_t place = window_position(), window = products.rule.window;
  if (place >= products.positions) return;
  const std::int64_t seen = products.write(place, weights + place * window);
  window_softmax(weights + place * window, window, seen);
}

void window_dot_weights(Step& step, const Tensor& keys, const Tensor& position_keys, const Tensor& queries,
                        const Tensor& preceding, const WindowRule& rule, Tensor& weights) {
  dispatch_storage(queries.dtype(), "window_attention_dot", [&]<class T>() {
    const WindowProducts<T> products(keys, position_keys, queries, preceding, rule);
    launch(step, warp_for_each_position(products.positions), dot_weights<T>, products, weights.data<Compute<T>>());
  });
}

const bool bound = kernels::window_dot_weights.bind(kThisDevice, &window_dot_weights);

}  // namespace
}  // namespace engram::cuda::window_attention_dot_kernels

#include "core/kernels/window_attention_dot.hpp"

#include "cpu/parallel.hpp"
#include "cpu/window_products.hpp"
#include "cpu/window_softmax.hpp"

namespace engram::cpu {
namespace {

void window_dot_weights(Step&, const Tensor& keys, const Tensor& position_keys, const Tensor& queries,
                        const Tensor& preceding, const WindowRule& rule, Tensor& weights) {
  dispatch_float(queries.dtype(), "window_attention_dot", [&]<class T>() {
    const std::int64_t window = rule.window;
    T* const result = weights.data<T>();
    for_window_products<T>(
        keys, position_keys, queries, preceding, rule, result,
        [=](std::int64_t place, std::int64_t seen) { window_softmax(result + place * window, window, seen); });
  });
}

const bool bound = kernels::window_dot_weights.bind(DeviceKind::cpu, &window_dot_weights);

}  // namespace
}  // namespace engram::cpu

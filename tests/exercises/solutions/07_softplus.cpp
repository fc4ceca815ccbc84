#include "tests/exercises/07_softplus.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/backward.hpp"
#include "autograd/node.hpp"
#include "core/dtype.hpp"
#include "core/step.hpp"

namespace engram::exercises {
namespace {

void softplus_forward(Step&, const Tensor& x, Tensor& y) {
  dispatch_float(x.dtype(), "softplus", [&]<class T>() {
    const T* in = x.data<const T>();
    T* out = y.data<T>();
    // Of a large x the exponential overflows; exp(-|x|) never does.
    for (std::int64_t i = 0; i < x.count(); ++i)
      out[i] = std::max(in[i], T(0)) + std::log1p(std::exp(-std::abs(in[i])));
  });
}

void softplus_backward(Step&, const Tensor& x, const Tensor& dy, const Target& dx) {
  dispatch_float(x.dtype(), "softplus", [&]<class T>() {
    const T* in = x.data<const T>();
    const T* gradient = dy.data<const T>();
    T* out = dx.data<T>();
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const T value = gradient[i] / (1 + std::exp(-in[i]));
      out[i] = dx.write == Write::add ? out[i] + value : value;
    }
  });
}

const bool softplus_bound = kernels::softplus_forward.bind(DeviceKind::cpu, &softplus_forward) &&
                            kernels::softplus_backward.bind(DeviceKind::cpu, &softplus_backward);

struct Softplus final : Node {
  Tensor x;

  explicit Softplus(Tensor input) : x(std::move(input)) {}
  std::string_view name() const override { return "softplus"; }
  std::vector<Saved> saved() const override { return {{"x", x}}; }
  void backward(Step& step, Backward& pass) override {
    if (Target dx = pass.input_grad(0)) kernels::softplus_backward(step, x, pass.output_grad(), dx);
  }
};

}  // namespace

Variable softplus(const Variable& x) {
  Step& step = x.tape().step();
  Tensor y = step.empty(x.shape(), x.dtype());
  kernels::softplus_forward(step, x.value(), y);
  return x.tape().record(Softplus{x.value()}, {x}, std::move(y));
}

}  // namespace engram::exercises

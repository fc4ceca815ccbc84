#include "apps/tour/square.hpp"

#include "autograd/tape.hpp"

namespace engram::tour {
namespace {

void square_forward(Step&, const Tensor& x, Tensor& y) {
  dispatch_float(x.dtype(), "square", [&]<class T>() {
    const T* in = x.data<const T>();
    T* out = y.data<T>();
    for (std::int64_t i = 0; i < x.count(); ++i) out[i] = in[i] * in[i];
  });
}

void square_backward(Step&, const Tensor& x, const Tensor& dy, const Target& dx) {
  dispatch_float(x.dtype(), "square", [&]<class T>() {
    const T* in = x.data<const T>();
    const T* gradient = dy.data<const T>();
    T* out = dx.data<T>();
    for (std::int64_t i = 0; i < x.count(); ++i) {
      const T value = 2 * in[i] * gradient[i];
      out[i] = dx.write == Write::add ? out[i] + value : value;
    }
  });
}

const bool bound = kernels::square_forward.bind(DeviceKind::cpu, &square_forward) &&
                   kernels::square_backward.bind(DeviceKind::cpu, &square_backward);

struct Square final : Node {
  Tensor x;

  explicit Square(Tensor input) : x(std::move(input)) {}
  std::string_view name() const override { return "square"; }
  std::vector<Saved> saved() const override { return {{"x", x}}; }
  void backward(Step& step, Backward& pass) override {
    if (Target dx = pass.input_grad(0)) kernels::square_backward(step, x, pass.output_grad(), dx);
  }
};

}  // namespace

Variable square(const Variable& x) {
  Step& step = x.tape().step();
  Tensor y = step.empty(x.shape(), x.dtype());
  kernels::square_forward(step, x.value(), y);
  return x.tape().record(Square{x.value()}, {x}, std::move(y));
}

}  // namespace engram::tour

/// An operation that Engram does not have, x^2, with its kernels: slots that this program declares and fills.

#include <cstdio>
#include <engram/engram.hpp>

using namespace engram;

namespace {

/// y[i] = x[i]^2. Same shape and dtype.
constinit Kernel<void(const Tensor& x, Tensor& y)> square_forward{"square_forward"};
/// dx[i] (set or add) 2 x[i] dy[i].
constinit Kernel<void(const Tensor& x, const Tensor& dy, const Target& dx)> square_backward{"square_backward"};

void forward_on_cpu(Step&, const Tensor& x, Tensor& y) {
  dispatch_float(x.dtype(), "square", [&]<class T>() {
    const T* in = x.data<const T>();
    T* out = y.data<T>();
    for (std::int64_t i = 0; i < x.count(); ++i) out[i] = in[i] * in[i];
  });
}

void backward_on_cpu(Step&, const Tensor& x, const Tensor& dy, const Target& dx) {
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

const bool bound =
    square_forward.bind(DeviceKind::cpu, &forward_on_cpu) && square_backward.bind(DeviceKind::cpu, &backward_on_cpu);

/// What the backward pass keeps: the input.
struct Square final : Node {
  Tensor x;

  explicit Square(Tensor input) : x(std::move(input)) {}
  std::string_view name() const override { return "square"; }
  std::vector<Saved> saved() const override { return {{"x", x}}; }
  void backward(Step& step, Backward& pass) override {
    if (Target dx = pass.input_grad(0)) square_backward(step, x, pass.output_grad(), dx);
  }
};

/// x^2, element by element. x: any shape, f32 or f64.
Variable square(const Variable& x) {
  Step& step = x.tape().step();
  Tensor y = step.empty(x.shape(), x.dtype());
  square_forward(step, x.value(), y);
  return x.tape().record(Square{x.value()}, {x}, std::move(y));
}

}  // namespace

int main() {
  const auto backend = open_backend({DeviceKind::cpu});
  HeapAllocator heap(*backend);
  Arena arena(heap);
  Step step(*backend, arena, /*seed=*/1);
  Tensor numbers({3}, DType::f64, backend->device(), heap);
  numbers.data<double>()[0] = 0.5;
  numbers.data<double>()[1] = -1.5;
  numbers.data<double>()[2] = 2;

  // Against central differences. `x^2 + x^2` reads its input twice: the second gradient is added to the first.
  const std::vector<Tensor> inputs{numbers};
  const GradcheckReport report = gradcheck(
      step,
      [](std::span<Variable> x) {
        const Variable y = tanh(x[0]);
        return std::vector<Variable>{add(square(y), square(y))};
      },
      inputs);
  std::printf("bound: %d; gradients of %d numbers, worst relative error %.0e\n", bound,
              static_cast<int>(report.checked), report.worst_relative);
  return bound && report.checked == 3 && report.worst_relative < 1e-6 ? 0 : 1;
}

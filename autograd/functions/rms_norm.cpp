#include "autograd/functions/rms_norm.hpp"

#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/rms_norm.hpp"

namespace engram {
namespace {

struct RmsNorm final : Node {
  std::string_view op;
  Tensor x;           // [..., n]
  Tensor gain;        // [n] or empty
  Tensor reciprocal;  // [rows]
  double divisor;

  RmsNorm(std::string_view of, Tensor input, Tensor factor, Tensor one_over_root, double by)
      : op(of), x(std::move(input)), gain(std::move(factor)), reciprocal(std::move(one_over_root)), divisor(by) {}
  std::string_view name() const override { return op; }
  std::vector<Saved> saved() const override {
    std::vector<Saved> all{{"x", x}, {"reciprocal", reciprocal}};
    if (gain) all.push_back({"gain", gain});
    return all;
  }
  void backward(Step& step, Backward& pass) override {
    const Target dx = pass.separate_grad(0), dgain = gain ? pass.separate_grad(1) : Target{};
    kernels::rms_norm_backward(step, x, gain, divisor, reciprocal, pass.output_grad(), dx, dgain);
  }
};

void check_axis(const char* op, const Variable& x) {
  if (x.shape().rank() < 1 || x.shape()[-1] < 1)
    throw ShapeError(text(op, ": x must have at least one axis, not empty, got ", x.shape()));
}

Variable normalise(std::string_view op, const Variable& x, const Variable& gain, double divisor, double epsilon) {
  Step& step = x.tape().step();
  Tensor y = step.empty(x.shape(), x.dtype());
  Tensor reciprocal = step.empty({x.shape().rows()}, compute_dtype(x.dtype()));
  kernels::rms_norm_forward(step, x.value(), gain.value(), divisor, epsilon, y, reciprocal);
  RmsNorm node{op, x.value(), gain.value(), std::move(reciprocal), divisor};
  if (gain) return x.tape().record(std::move(node), {x, gain}, std::move(y));
  return x.tape().record(std::move(node), {x}, std::move(y));
}

}  // namespace

Variable rms_norm(const Variable& x, const Variable& gain, double epsilon) {
  check_axis("rms_norm", x);
  if (gain) {
    check_shape("rms_norm", "gain", gain.value(), {x.shape()[-1]});
    check_dtype("rms_norm", "gain", gain.value(), compute_dtype(x.dtype()));
    check_same_device("rms_norm", x.value(), gain.value());
  }
  return normalise("rms_norm", x, gain, static_cast<double>(x.shape()[-1]), epsilon);
}

Variable l2_norm(const Variable& x) {
  check_axis("l2_norm", x);
  return normalise("l2_norm", x, {}, 1, 0);
}

}  // namespace engram

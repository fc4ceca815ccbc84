#include "autograd/functions/layer_norm.hpp"

#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/layer_norm.hpp"

namespace engram {
namespace {

struct Statistics {
  Tensor mean, reciprocal_deviation;  // [rows]
};

/// Gradients of gain and bias, and of what was normalised into `dx` (which may be empty).
void norm_backward(Step& step, Backward& pass, const Tensor& sum, const Tensor& gain, const Statistics& rows,
                   int output, int gain_input, const Tensor& dsum_in, const Target& dx) {
  const Target dgain = pass.separate_grad(gain_input), dbias = pass.separate_grad(gain_input + 1);
  kernels::layer_norm_backward(step, sum, gain, rows.mean, rows.reciprocal_deviation, pass.output_grad(output), dsum_in,
                               dx, dgain, dbias);
}

struct LayerNorm final : Node {
  Tensor x;     // [..., n]
  Tensor gain;  // [n]
  Statistics rows;

  LayerNorm(Tensor input, Tensor factor, Statistics statistics)
      : x(std::move(input)), gain(std::move(factor)), rows(std::move(statistics)) {}
  std::string_view name() const override { return "layer_norm"; }
  std::vector<Saved> saved() const override {
    return {{"x", x}, {"gain", gain}, {"mean", rows.mean}, {"reciprocal_deviation", rows.reciprocal_deviation}};
  }
  void backward(Step& step, Backward& pass) override {
    norm_backward(step, pass, x, gain, rows, 0, 1, {}, pass.separate_grad(0));
  }
};

struct LayerNormResidual final : Node {
  Tensor sum;   // [..., n]
  Tensor gain;  // [n]
  Statistics rows;

  LayerNormResidual(Tensor total, Tensor factor, Statistics statistics)
      : sum(std::move(total)), gain(std::move(factor)), rows(std::move(statistics)) {}
  std::string_view name() const override { return "layer_norm_residual"; }
  std::vector<Saved> saved() const override {
    return {{"sum", sum}, {"gain", gain}, {"mean", rows.mean}, {"reciprocal_deviation", rows.reciprocal_deviation}};
  }
  void backward(Step& step, Backward& pass) override {
    if (!pass.has_output_grad(1)) {
      pass.pass_through({0, 1}, 0);
      return;
    }
    const Tensor dsum_in = pass.has_output_grad(0) ? pass.output_grad(0) : Tensor();
    if (pass.wants_grad(0) && pass.wants_grad(1)) {
      // x and residual have one gradient: it is computed once, then handed to both.
      Tensor dsum = step.empty(sum.shape(), sum.dtype());
      norm_backward(step, pass, sum, gain, rows, 1, 2, dsum_in, {dsum, Write::set});
      pass.give(0, dsum);
      pass.give(1, std::move(dsum));
    } else {
      norm_backward(step, pass, sum, gain, rows, 1, 2, dsum_in, pass.separate_grad(pass.wants_grad(0) ? 0 : 1));
    }
  }
};

void check_norm(const char* op, const Variable& x, const Variable& gain, const Variable& bias) {
  if (x.shape().rank() < 1 || x.shape()[-1] < 1)
    throw ShapeError(text(op, ": x must have at least one axis, not empty, got ", x.shape()));
  for (const auto& [name, parameter] : {std::pair{"gain", &gain}, std::pair{"bias", &bias}}) {
    check_shape(op, name, parameter->value(), {x.shape()[-1]});
    check_dtype(op, name, parameter->value(), compute_dtype(x.dtype()));
    check_same_device(op, x.value(), parameter->value());
  }
}

Statistics make_statistics(Step& step, const Variable& x) {
  const DType dtype = compute_dtype(x.dtype());
  return {step.empty({x.shape().rows()}, dtype), step.empty({x.shape().rows()}, dtype)};
}

}  // namespace

Variable layer_norm(const Variable& x, const Variable& gain, const Variable& bias, double epsilon) {
  check_norm("layer_norm", x, gain, bias);
  Step& step = x.tape().step();
  Tensor y = step.empty(x.shape(), x.dtype());
  Tensor no_sum;
  Statistics rows = make_statistics(step, x);
  kernels::layer_norm_forward(step, x.value(), {}, gain.value(), bias.value(), epsilon, no_sum, y, rows.mean,
                              rows.reciprocal_deviation);
  return x.tape().record(LayerNorm{x.value(), gain.value(), std::move(rows)}, {x, gain, bias}, std::move(y));
}

ResidualNorm layer_norm_residual(const Variable& x, const Variable& residual, const Variable& gain,
                                 const Variable& bias, double epsilon) {
  check_norm("layer_norm_residual", x, gain, bias);
  check_shape("layer_norm_residual", "residual", residual.value(), x.shape());
  check_dtype("layer_norm_residual", "residual", residual.value(), x.dtype());
  check_same_device("layer_norm_residual", x.value(), residual.value());
  Step& step = x.tape().step();
  Tensor sum = step.empty(x.shape(), x.dtype());
  Tensor y = step.empty(x.shape(), x.dtype());
  Statistics rows = make_statistics(step, x);
  kernels::layer_norm_forward(step, x.value(), residual.value(), gain.value(), bias.value(), epsilon, sum, y, rows.mean,
                              rows.reciprocal_deviation);
  auto [total, normalised] = x.tape().record_outputs(LayerNormResidual{sum, gain.value(), std::move(rows)},
                                                     {x, residual, gain, bias}, std::array{sum, std::move(y)});
  return {std::move(total), std::move(normalised)};
}

}  // namespace engram

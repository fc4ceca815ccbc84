#include "autograd/functions/batch_norm.hpp"

#include <algorithm>

#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/batch_norm.hpp"

namespace engram {
namespace {

struct BatchNorm final : Node {
  Tensor x;  // [..., n]
  RowMask mask;
  Tensor gain, mean, reciprocal_deviation;  // [n]

  BatchNorm(Tensor input, RowMask rows, Tensor factor, Tensor center, Tensor reciprocal)
      : x(std::move(input)),
        mask(std::move(rows)),
        gain(std::move(factor)),
        mean(std::move(center)),
        reciprocal_deviation(std::move(reciprocal)) {}
  std::string_view name() const override { return "batch_norm"; }
  std::vector<Saved> saved() const override {
    std::vector<Saved> all{{"x", x}, {"gain", gain}, {"mean", mean}, {"reciprocal_deviation", reciprocal_deviation}};
    if (mask.included) all.push_back({"mask", mask.included});
    return all;
  }
  void backward(Step& step, Backward& pass) override {
    const Target dx = pass.separate_grad(0), dgain = pass.separate_grad(1), dbias = pass.separate_grad(2);
    kernels::batch_norm_backward(step, x, mask.included, mask.count, gain, mean, reciprocal_deviation,
                                 pass.output_grad(), dx, dgain, dbias);
  }
};

void check(const Variable& x, const Variable& gain, const Variable& bias, const RunningStatistics& running,
           const RowMask& mask) {
  constexpr const char* kOp = "batch_norm";
  if (x.shape().rank() < 1 || x.shape()[-1] < 1)
    throw ShapeError(text(kOp, ": x must have at least one axis and one feature, got ", x.shape()));
  for (const auto& [name, tensor] :
       {std::pair{"gain", &gain.value()}, std::pair{"bias", &bias.value()}, std::pair{"running mean", &running.mean},
        std::pair{"running variance", &running.variance}}) {
    check_shape(kOp, name, *tensor, {x.shape()[-1]});
    check_dtype(kOp, name, *tensor, compute_dtype(x.dtype()));
    check_same_device(kOp, x.value(), *tensor);
  }
  if (!mask.included) return;
  check_shape(kOp, "mask", mask.included, {x.shape().rows()});
  check_dtype(kOp, "mask", mask.included, DType::i32);
  check_same_device(kOp, x.value(), mask.included);
}

/// The rows that take part in training.
std::int64_t count_rows(const Variable& x, const RowMask& mask) {
  const std::int64_t rows = x.shape().rows();
  const std::int64_t count = mask.included ? mask.count : rows;
  if (count < 0 || count > rows)
    throw Error(text("batch_norm: the count of a mask must be from 0 to its ", rows, " rows, got ", count));
  if (mask.included && mask.included.device().kind == DeviceKind::cpu && x.tape().step().computes()) {
    const auto* included = mask.included.data<const std::int32_t>();
    const std::int64_t found = rows - std::count(included, included + rows, 0);
    if (found != count)
      throw Error(
          text("batch_norm: the count of a mask must be that of its rows which are not 0, ", found, ", got ", count));
  }
  if (count == 1)
    throw ShapeError(text("batch_norm: in training, batch norm needs more than one row, got 1",
                          rows > 1 ? text(", the other ", rows - 1, " are masked") : std::string(),
                          "\n  take larger batches, or layer norm, which needs no other rows"));
  return count;
}

}  // namespace

Variable batch_norm(const Variable& x, const Variable& gain, const Variable& bias, const RunningStatistics& running,
                    const RowMask& mask, const BatchNormRule& rule) {
  check(x, gain, bias, running, mask);
  Step& step = x.tape().step();
  if (!x.tape().training()) {
    Tensor y = step.empty(x.shape(), x.dtype());
    kernels::batch_norm_inference(step, x.value(), mask.included, gain.value(), bias.value(), running.mean,
                                  running.variance, rule.epsilon, y);
    return x.tape().constant(std::move(y));
  }
  const std::int64_t count = count_rows(x, mask);
  Tensor y = step.empty(x.shape(), x.dtype());
  const DType dtype = compute_dtype(x.dtype());
  Tensor mean = step.empty(gain.shape(), dtype), reciprocal = step.empty(gain.shape(), dtype);
  Tensor running_mean = running.mean, running_variance = running.variance;
  kernels::batch_norm_training(step, x.value(), mask.included, count, gain.value(), bias.value(), rule.epsilon,
                               rule.momentum, running_mean, running_variance, y, mean, reciprocal);
  return x.tape().record(
      BatchNorm{x.value(), {mask.included, count}, gain.value(), std::move(mean), std::move(reciprocal)},
      {x, gain, bias}, std::move(y));
}

}  // namespace engram

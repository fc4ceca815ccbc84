#include "autograd/functions/slice.hpp"

#include "autograd/functions/axis_layout.hpp"
#include "autograd/tape.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/fill.hpp"

namespace engram {
namespace {

struct Slice final : Node {
  int axis;
  std::int64_t begin;

  Slice(int cut_axis, std::int64_t first) : axis(cut_axis), begin(first) {}
  std::string_view name() const override { return "slice"; }
  void backward(Step& step, Backward& pass) override {
    const Target dx = pass.input_grad(0);
    if (!dx) return;
    kernels::clear_if_set(step, dx);
    const Tensor& dy = pass.output_grad();
    const AxisLayout whole(dx.tensor.shape(), axis);
    const std::int64_t length = dy.shape()[axis] * whole.inner;
    kernels::copy_runs(step, dy, {.offset = 0, .stride = length}, dx,
                       {.offset = begin * whole.inner, .stride = whole.size * whole.inner}, whole.outer, length);
  }
};

}  // namespace

Variable slice(const Variable& x, int axis, std::int64_t begin, std::int64_t end) {
  axis = axis_from_front("slice", x.shape(), axis);
  const AxisLayout whole(x.shape(), axis);
  if (begin < 0 || end < begin || end > whole.size)
    throw ShapeError(
        text("slice: begin and end must be within axis ", axis, " of ", x.shape(), ", got ", begin, " and ", end));
  Tape& tape = x.tape();
  if (axis == 0) return tape.record(Slice{axis, begin}, {x}, x.value().rows(begin, end), tape.gradient_dtype(x));
  Step& step = tape.step();
  Tensor y = step.empty(x.shape().with(axis, end - begin), x.dtype());
  const std::int64_t length = (end - begin) * whole.inner;
  kernels::copy_runs(step, x.value(), {.offset = begin * whole.inner, .stride = whole.size * whole.inner},
                     {y, Write::set}, {.offset = 0, .stride = length}, whole.outer, length);
  return tape.record(Slice{axis, begin}, {x}, std::move(y));
}

}  // namespace engram

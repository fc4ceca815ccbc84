#include "autograd/functions/concat.hpp"

#include "autograd/functions/axis_layout.hpp"
#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/kernels/copy.hpp"

namespace engram {
namespace {

struct Concat final : Node {
  int axis;
  std::pmr::vector<Shape> shapes;  // of the parts

  Concat(int joined_axis, std::pmr::vector<Shape> part_shapes) : axis(joined_axis), shapes(std::move(part_shapes)) {}
  std::string_view name() const override { return "concat"; }
  void backward(Step& step, Backward& pass) override {
    const Tensor& dy = pass.output_grad();
    const AxisLayout whole(dy.shape(), axis);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      const AxisLayout part(shapes[i], axis);
      const std::int64_t length = part.size * part.inner;
      if (Target dx = pass.input_grad(static_cast<int>(i)))
        kernels::copy_runs(step, dy, {.offset = begin, .stride = whole.size * whole.inner}, dx,
                           {.offset = 0, .stride = length}, whole.outer, length);
      begin += length;
    }
  }
};

}  // namespace

Variable concat(std::span<const Variable> parts, int axis) {
  if (parts.empty()) throw ShapeError("concat: there must be at least one part, got none");
  const Variable& first = parts.front();
  axis = axis_from_front("concat", first.shape(), axis);
  Step& step = first.tape().step();
  std::pmr::vector<Shape> shapes(step.objects());
  std::int64_t size = 0;
  for (const Variable& part : parts) {
    if (part.shape().rank() != first.shape().rank() || part.shape().with(axis, first.shape()[axis]) != first.shape())
      throw ShapeError(text("concat: all parts must agree except along axis ", axis, ", got ", first.shape(), " and ",
                            part.shape()));
    check_dtype("concat", "part", part.value(), first.dtype());
    check_same_device("concat", first.value(), part.value());
    shapes.push_back(part.shape());
    size += part.shape()[axis];
  }
  Tensor y = step.empty(first.shape().with(axis, size), first.dtype());
  const AxisLayout whole(y.shape(), axis);
  std::int64_t begin = 0;
  for (const Variable& part : parts) {
    const std::int64_t length = part.shape()[axis] * whole.inner;
    kernels::copy_runs(step, part.value(), {.offset = 0, .stride = length}, {y, Write::set},
                       {.offset = begin, .stride = whole.size * whole.inner}, whole.outer, length);
    begin += length;
  }
  return first.tape().record(Concat{axis, std::move(shapes)}, parts, std::move(y));
}

}  // namespace engram

#include "autograd/functions/multiply.hpp"

#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/error.hpp"
#include "core/kernels/multiply.hpp"

namespace engram {
namespace {

struct Multiply final : Node {
  Tensor a, b;

  Multiply(Tensor left, Tensor right) : a(std::move(left)), b(std::move(right)) {}
  std::string_view name() const override { return "multiply"; }
  std::vector<Saved> saved() const override { return {{"a", a}, {"b", b}}; }
  void backward(Step& step, Backward& pass) override {
    if (Target da = pass.input_grad(0)) kernels::multiply(step, pass.output_grad(), b, da);
    if (Target db = pass.input_grad(1)) {
      if (b.shape() == a.shape())
        kernels::multiply(step, pass.output_grad(), a, db);
      else
        kernels::row_dots(step, pass.output_grad(), a, db);
    }
  }
};

bool has_one_number_per_row(const Shape& shape, const Shape& of) {
  if (shape.rank() != of.rank() || shape.rank() == 0 || shape[-1] != 1) return false;
  for (int axis = 0; axis + 1 < shape.rank(); ++axis)
    if (shape[axis] != of[axis]) return false;
  return true;
}

}  // namespace

Variable multiply(const Variable& a, const Variable& b) {
  if (!a || !b) throw ShapeError("multiply: needs two tensors, got no tensor");
  if (b.shape() != a.shape() && !has_one_number_per_row(b.shape(), a.shape()))
    throw ShapeError(
        text("multiply: b must be ", a.shape(), " like a, or have one number for each row, got ", b.shape()));
  check_dtype("multiply", "b", b.value(), a.dtype());
  check_same_device("multiply", a.value(), b.value());
  Step& step = a.tape().step();
  Tensor y = step.empty(a.shape(), a.dtype());
  kernels::multiply(step, a.value(), b.value(), {y, Write::set});
  return a.tape().record(Multiply{a.value(), b.value()}, {a, b}, std::move(y));
}

}  // namespace engram

#include "autograd/functions/delayed_slices.hpp"

#include "autograd/functions/window_inputs.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/kernels/delayed_slices.hpp"

namespace engram {
namespace {

struct DelayedSlices final : Node {
  Tensor preceding;  // [B, M]
  WindowRule rule;

  DelayedSlices(Tensor before, const WindowRule& delays) : preceding(std::move(before)), rule(delays) {}
  std::string_view name() const override { return "delayed_slices"; }
  std::vector<Saved> saved() const override { return {{"preceding", preceding}}; }
  void backward(Step& step, Backward& pass) override {
    if (Target dx = pass.input_grad(0)) kernels::delayed_slices_backward(step, pass.output_grad(), preceding, rule, dx);
  }
};

}  // namespace

Variable delayed_slices(const Variable& x, const Tensor& preceding, std::int64_t parts) {
  if (!preceding || preceding.shape().rank() != 2)
    throw ShapeError(text("delayed_slices: preceding must be [B, M], got ", preceding.shape()));
  if (parts < 1) throw ShapeError(text("delayed_slices: there must be at least 1 part, got ", parts));
  WindowRule rule = window_rule("delayed_slices", "x", x, preceding.shape(), preceding, parts);
  rule.with_present = true;
  const std::int64_t width = x.shape()[2], below = width / parts * parts;
  if (below != width)
    throw ShapeError(text("delayed_slices: ", parts, " equal parts need a width that they divide, got ", width,
                          "\n  the nearest: ", below > 0 ? text(below, " and ", below + parts) : text(parts)));
  Step& step = x.tape().step();
  Tensor y = step.empty({x.shape()[0], rule.block, width}, x.dtype());
  kernels::delayed_slices_forward(step, x.value(), preceding, rule, y);
  return x.tape().record(DelayedSlices{preceding, rule}, {x}, std::move(y));
}

}  // namespace engram

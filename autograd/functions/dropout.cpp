#include "autograd/functions/dropout.hpp"

#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/kernels/dropout.hpp"

namespace engram {
namespace {

struct Dropout final : Node {
  RandomStream random;
  DropoutRule rule;

  Dropout(RandomStream stream, DropoutRule dropout_rule) : random(stream), rule(dropout_rule) {}
  std::string_view name() const override { return "dropout"; }
  void backward(Step& step, Backward& pass) override {
    if (GradTarget dx = pass.input_grad(0))
      kernels::dropout(step, pass.output_grad(), random, rule, dx.tensor, dx.write);
  }
};

}  // namespace

Variable dropout(const Variable& x, double rate) {
  // The upper end is where the rounded rate would drop everything.
  if (!(rate >= 0 && rate < 1 - 0.5 / 65536)) throw Error(text("dropout: the rate must be in [0, 1), got ", rate));
  const DropoutRule rule(rate);
  if (!x.tape().training() || !rule.active()) return x;
  Step& step = x.tape().step();
  const RandomStream random = step.next_random();
  Tensor y = step.empty(x.shape(), x.dtype());
  kernels::dropout(step, x.value(), random, rule, y, Write::set);
  return x.tape().record(Dropout{random, rule}, {x}, std::move(y));
}

}  // namespace engram

#include "autograd/functions/add.hpp"

#include "autograd/tape.hpp"
#include "core/check.hpp"
#include "core/kernels/add.hpp"

namespace engram {
namespace {

struct Add final : Node {
  std::string_view name() const override { return "add"; }
  void backward(Step&, Backward& pass) override { pass.pass_through({0, 1}); }
};

}  // namespace

Variable add(const Variable& a, const Variable& b) {
  check_shape("add", "b", b.value(), a.shape());
  check_dtype("add", "b", b.value(), a.dtype());
  check_same_device("add", a.value(), b.value());
  Step& step = a.tape().step();
  Tensor y = step.empty(a.shape(), a.dtype());
  kernels::add(step, a.value(), b.value(), y);
  return a.tape().record(Add{}, {a, b}, std::move(y));
}

}  // namespace engram

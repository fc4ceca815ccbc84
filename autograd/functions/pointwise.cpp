#include "autograd/functions/pointwise.hpp"

#include <type_traits>

#include "autograd/tape.hpp"
#include "core/kernels/pointwise.hpp"

namespace engram {
namespace {

/// Whether the derivative needs x; the others are functions of y alone (relu: y > 0 exactly where x > 0), so that the
/// input's memory is free as soon as nobody else needs it.
template <class F>
inline constexpr bool kKeepsInput = std::is_same_v<F, Gelu> || std::is_same_v<F, Silu>;

template <class F>
struct Pointwise final : Node {
  Tensor kept;  // x or y

  explicit Pointwise(Tensor x_or_y) : kept(std::move(x_or_y)) {}
  std::string_view name() const override { return F::name; }
  std::vector<Saved> saved() const override { return {{kKeepsInput<F> ? "x" : "y", kept}}; }
  void backward(Step& step, Backward& pass) override {
    if (Target dx = pass.input_grad(0)) kernels::pointwise_backward<F>(step, kept, kept, pass.output_grad(), dx);
  }
};

template <class F>
Variable pointwise(const Variable& x) {
  Step& step = x.tape().step();
  Tensor y = step.empty(x.shape(), x.dtype());
  kernels::pointwise_forward<F>(step, x.value(), y);
  return x.tape().record(Pointwise<F>{kKeepsInput<F> ? x.value() : y}, {x}, y);
}

}  // namespace

Variable relu(const Variable& x) { return pointwise<Relu>(x); }
Variable gelu(const Variable& x) { return pointwise<Gelu>(x); }
Variable tanh(const Variable& x) { return pointwise<Tanh>(x); }
Variable sigmoid(const Variable& x) { return pointwise<Sigmoid>(x); }
Variable silu(const Variable& x) { return pointwise<Silu>(x); }

}  // namespace engram

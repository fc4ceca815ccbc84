/// Step 3: nodes in the place of closures. The members of a node are what its backward pass keeps.

#include <fmt/ostream.h>

#include <memory>
#include <vector>

#include "apps/tour/counted_memory.hpp"
#include "apps/tour/loops.hpp"
#include "apps/tour/tour.hpp"
#include "apps/tour/values.hpp"

namespace engram::tour {
namespace {

struct Node {
  virtual ~Node() = default;
  virtual void backward(const Tensor& dy) = 0;
};
struct Slot {
  Shape shape;                 // of a value that the tape itself does not hold any more
  std::unique_ptr<Node> node;  // empty for a leaf
  Tensor gradient;
};
struct Variable {
  Tensor value;
  std::size_t slot = 0;
};
struct Globals {
  CountedMemory memory;
  std::vector<Slot> tape;
};
Globals& globals() {
  static Globals everything;
  return everything;
}

Tensor empty(Shape shape) { return Tensor(shape, DType::f64, {DeviceKind::cpu}, globals().memory); }
const Tensor& gradient(std::size_t slot) { return globals().tape[slot].gradient; }
Variable record(Tensor value, std::unique_ptr<Node> node) {
  globals().tape.push_back({value.shape(), std::move(node), {}});
  return {std::move(value), globals().tape.size() - 1};
}

struct Matmul final : Node {
  Variable a, b;  // each is needed for the gradient of the other
  Matmul(Variable left, Variable right) : a(std::move(left)), b(std::move(right)) {}
  void backward(const Tensor& dy) override {
    multiply(dy, Transpose::no, b.value, Transpose::yes, gradient(a.slot), Write::add);  // da += dy b^T
    multiply(a.value, Transpose::yes, dy, Transpose::no, gradient(b.slot), Write::add);  // db += a^T dy
  }
};
struct Add final : Node {
  std::size_t a, b;  // slots: no tensor at all
  Add(std::size_t left, std::size_t right) : a(left), b(right) {}
  void backward(const Tensor& dy) override {
    copy(dy, gradient(a), Write::add);
    copy(dy, gradient(b), Write::add);
  }
};
struct Tanh final : Node {
  std::size_t x;
  Tensor y;  // the derivative is a function of the output, so the input may go
  Tanh(std::size_t input, Tensor output) : x(input), y(std::move(output)) {}
  void backward(const Tensor& dy) override { tanh_backward(y, dy, gradient(x), Write::add); }
};
struct Sum final : Node {
  std::size_t x;
  explicit Sum(std::size_t input) : x(input) {}
  void backward(const Tensor& dy) override { fill(gradient(x), dy.data<double>()[0], Write::add); }
};

Variable matmul(const Variable& a, const Variable& b) {
  Tensor y = empty({a.value.shape()[0], b.value.shape()[1]});
  multiply(a.value, Transpose::no, b.value, Transpose::no, y, Write::set);
  return record(y, std::make_unique<Matmul>(a, b));
}
Variable add(const Variable& a, const Variable& b) {
  Tensor y = empty(a.value.shape());
  copy(a.value, y, Write::set);
  copy(b.value, y, Write::add);
  return record(y, std::make_unique<Add>(a.slot, b.slot));
}
Variable tanh(const Variable& x) {
  Tensor y = empty(x.value.shape());
  tanh_forward(x.value, y);
  return record(y, std::make_unique<Tanh>(x.slot, y));
}
Variable sum(const Variable& x) {
  Tensor y = empty({1});
  sum_forward(x.value, y);
  return record(y, std::make_unique<Sum>(x.slot));
}

void backward(const Variable& loss) {
  for (Slot& slot : globals().tape) {
    slot.gradient = empty(slot.shape);
    fill(slot.gradient, 0, Write::set);
  }
  fill(gradient(loss.slot), 1, Write::set);
  for (std::size_t place = loss.slot + 1; place-- > 0;) {
    Slot& slot = globals().tape[place];
    if (!slot.node) continue;
    slot.node->backward(slot.gradient);
    slot = {};  // what it kept is free, before the next operation runs
  }
}

}  // namespace

void node_tape(std::ostream& out) {
  CountedMemory& memory = globals().memory;
  const Variable x = record(tensor_of(memory, {2, 2}, {0.5, -1.0, 0.25, 0.75}), nullptr);
  const Variable w = record(tensor_of(memory, {2, 2}, {-3.0, 1.0, 0.5, 2.0}), nullptr);
  const std::size_t inputs = memory.live;
  {
    const Variable loss = sum(tanh(add(matmul(x, w), x)));
    fmt::print(out, "forward pass left  {:3} bytes\n", memory.live - inputs);
    backward(loss);
  }
  fmt::print(out, "backward pass left {:3} bytes, {} at most\n", memory.live - inputs, memory.peak - inputs);
  fmt::print(out, "dx   = {}\ndw   = {}\n", numbers(gradient(x.slot)), numbers(gradient(w.slot)));
  globals().tape.clear();
}

}  // namespace engram::tour

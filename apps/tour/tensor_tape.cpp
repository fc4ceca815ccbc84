/// Step 2: the tape of step 1 with tensors in the place of scalars. Closures and globals are still there.

#include <fmt/ostream.h>

#include <functional>
#include <memory>
#include <vector>

#include "apps/tour/loops.hpp"
#include "apps/tour/tour.hpp"
#include "apps/tour/values.hpp"
#include "core/backend.hpp"
#include "core/check.hpp"
#include "core/error.hpp"

namespace engram::tour {
namespace {

struct Entry {
  Tensor value;
  Tensor gradient;  // of the loss with respect to this value, the same shape
  std::function<void()> backward;
};
struct Globals {
  std::unique_ptr<Backend> backend = open_backend({DeviceKind::cpu});
  HeapAllocator memory{*backend};
  std::vector<Entry> tape;
};
Globals& globals() {
  static Globals everything;
  return everything;
}

struct Variable {
  std::size_t place;  // on the tape
  const Tensor& value() const { return globals().tape[place].value; }
  const Tensor& gradient() const { return globals().tape[place].gradient; }
};

Tensor empty(Shape shape) { return Tensor(shape, DType::f64, {DeviceKind::cpu}, globals().memory); }
Variable record(Tensor value, std::function<void()> backward) {
  Tensor gradient = empty(value.shape());
  globals().tape.push_back({std::move(value), std::move(gradient), std::move(backward)});
  return {globals().tape.size() - 1};
}
Variable next() { return {globals().tape.size()}; }  // what record will return
Variable leaf(Tensor value) {
  return record(std::move(value), [] {});
}

Variable matmul(Variable a, Variable b) {
  const Shape &left = a.value().shape(), &right = b.value().shape();
  if (left.rank() != 2 || right.rank() != 2 || left[1] != right[0])
    throw ShapeError(text("matmul: inner sizes must agree, got ", left, " and ", right));
  Tensor y = empty({left[0], right[1]});
  multiply(a.value(), Transpose::no, b.value(), Transpose::no, y, Write::set);
  return record(y, [a, b, y = next()] {
    multiply(y.gradient(), Transpose::no, b.value(), Transpose::yes, a.gradient(), Write::add);  // da += dy b^T
    multiply(a.value(), Transpose::yes, y.gradient(), Transpose::no, b.gradient(), Write::add);  // db += a^T dy
  });
}
Variable add(Variable a, Variable b) {
  check_shape("add", "b", b.value(), a.value().shape());
  Tensor y = empty(a.value().shape());
  copy(a.value(), y, Write::set);
  copy(b.value(), y, Write::add);
  return record(y, [a, b, y = next()] {
    copy(y.gradient(), a.gradient(), Write::add);
    copy(y.gradient(), b.gradient(), Write::add);
  });
}
Variable tanh(Variable x) {
  Tensor y = empty(x.value().shape());
  tanh_forward(x.value(), y);
  return record(y, [x, y = next()] { tanh_backward(y.value(), y.gradient(), x.gradient(), Write::add); });
}
Variable sum(Variable x) {
  Tensor y = empty({1});
  sum_forward(x.value(), y);
  return record(y, [x, y = next()] { fill(x.gradient(), y.gradient().data<double>()[0], Write::add); });
}

void backward(Variable loss) {
  for (Entry& entry : globals().tape) fill(entry.gradient, 0, Write::set);
  fill(loss.gradient(), 1, Write::set);
  for (std::size_t place = loss.place + 1; place-- > 0;) globals().tape[place].backward();
}

}  // namespace

void tensor_tape(std::ostream& out) {
  globals().tape.clear();
  const Variable x = leaf(tensor_of(globals().memory, {2, 2}, {0.5, -1.0, 0.25, 0.75}));
  const Variable w = leaf(tensor_of(globals().memory, {2, 2}, {-3.0, 1.0, 0.5, 2.0}));
  const Variable loss = sum(tanh(add(matmul(x, w), x)));
  backward(loss);
  fmt::print(out, "loss = {}\n", numbers(loss.value()));
  fmt::print(out, "dx   = {}\n", numbers(x.gradient()));
  fmt::print(out, "dw   = {}\n", numbers(w.gradient()));

  const Tensor row = x.value().rows(1, 2);
  fmt::print(out, "row 1 of x: shape {}, {}, {} handles on one memory\n", text(row.shape()), numbers(row),
             row.use_count());
  try {
    add(x, leaf(empty({2, 3})));
  } catch (const ShapeError& error) {
    fmt::print(out, "{}\n", error.what());
  }
  globals().tape.clear();
}

}  // namespace engram::tour

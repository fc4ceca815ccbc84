/// Step 1: reverse-mode differentiation of scalars in sixty lines. Nothing of Engram is used yet.

#include <fmt/ostream.h>

#include <cmath>
#include <functional>
#include <vector>

#include "apps/tour/tour.hpp"

namespace engram::tour {
namespace {

struct Entry {
  double value;
  double gradient;                 // of the result with respect to this value
  std::function<void()> backward;  // adds to the gradients of the inputs
};
std::vector<Entry> tape;  // in the order in which the operations ran

struct Scalar {
  int place;  // on the tape
  double value() const { return tape[place].value; }
  double& gradient() const { return tape[place].gradient; }
};

Scalar record(double value, std::function<void()> backward) {
  tape.push_back({value, 0.0, std::move(backward)});
  return {static_cast<int>(tape.size()) - 1};
}
Scalar next() { return {static_cast<int>(tape.size())}; }  // what record will return
Scalar leaf(double value) {
  return record(value, [] {});
}

Scalar operator+(Scalar a, Scalar b) {
  return record(a.value() + b.value(), [a, b, y = next()] {
    a.gradient() += y.gradient();
    b.gradient() += y.gradient();
  });
}
Scalar operator*(Scalar a, Scalar b) {
  return record(a.value() * b.value(), [a, b, y = next()] {
    a.gradient() += b.value() * y.gradient();
    b.gradient() += a.value() * y.gradient();
  });
}
Scalar tanh(Scalar x) {
  return record(std::tanh(x.value()), [x, y = next()] { x.gradient() += (1 - y.value() * y.value()) * y.gradient(); });
}

void backward(Scalar loss) {
  for (Entry& entry : tape) entry.gradient = 0;
  loss.gradient() = 1;
  for (int place = loss.place; place >= 0; --place) tape[place].backward();
}

double f(double x, double w) { return std::tanh(x * w + x); }

}  // namespace

void scalar_tape(std::ostream& out) {
  tape.clear();
  const Scalar x = leaf(0.5), w = leaf(-3);
  const Scalar y = tanh(x * w + x);
  backward(y);

  const double h = 1e-5;
  const double by_x = (f(0.5 + h, -3) - f(0.5 - h, -3)) / (2 * h);
  const double by_w = (f(0.5, -3 + h) - f(0.5, -3 - h)) / (2 * h);
  fmt::print(out, "y     = {:.4f}, {} entries\n", y.value(), tape.size());
  fmt::print(out, "dy/dx = {:.4f}, by differences {:.4f}\n", x.gradient(), by_x);
  fmt::print(out, "dy/dw = {:.4f}, by differences {:.4f}\n", w.gradient(), by_w);
}

}  // namespace engram::tour

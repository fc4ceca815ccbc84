/// Step 14: the operation of apps/tour/square.hpp in use.

#include <fmt/ostream.h>

#include <vector>

#include "apps/tour/square.hpp"
#include "apps/tour/tour.hpp"
#include "apps/tour/values.hpp"
#include "apps/tour/workshop.hpp"
#include "autograd/functions.hpp"
#include "autograd/gradcheck.hpp"
#include "autograd/tape.hpp"

namespace engram::tour {

void added_op(std::ostream& out, KernelObserver* observer) {
  Workshop shop(observer);
  const std::vector<Tensor> inputs{tensor_of(shop.heap, {3}, {0.5, -1.5, 2.0})};
  const auto function = [](std::span<Variable> x) { return std::vector<Variable>{square(x[0])}; };
  const GradcheckReport report = gradcheck(shop.step, function, inputs);
  fmt::print(out, "gradient check {} on {} elements\n", report.worst_relative < 1e-6 ? "passes" : "FAILS",
             report.checked);

  Tape tape(shop.step);
  const Variable x = tape.leaf(inputs[0]);
  const Variable y = square(x);
  tape.backward({sum(add(y, square(x)))});
  fmt::print(out, "x = {}, x^2 = {}\n", numbers(x.value()), numbers(y.value()));
  fmt::print(out, "gradient of sum(x^2 + x^2) = {}\n", numbers(tape.gradient(x)));
}

}  // namespace engram::tour

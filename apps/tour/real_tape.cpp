/// Step 8: autograd/tape.hpp, which is steps 1 to 7 together.

#include <fmt/ostream.h>

#include "apps/tour/tour.hpp"
#include "apps/tour/values.hpp"
#include "apps/tour/workshop.hpp"
#include "autograd/functions.hpp"
#include "autograd/tape.hpp"

namespace engram::tour {

void real_tape(std::ostream& out, KernelObserver* observer) {
  Workshop shop(observer);
  {
    Tape tape(shop.step);
    const Variable x = tape.leaf(tensor_of(shop.arena, {2, 2}, {0.5, -1.0, 0.25, 0.75}));
    const Variable w = tape.leaf(tensor_of(shop.arena, {2, 2}, {-3.0, 1.0, 0.5, 2.0}));
    const Variable fixed = tape.constant(x.value());

    const Variable loss = sum(tanh(add(matmul(x, w), x)));
    const Variable unrecorded = sum(tanh(fixed));
    fmt::print(out, "loss = {}, {} operations recorded\n", numbers(loss.value()), tape.size());
    tape.backward({loss});
    fmt::print(out, "dx   = {}\ndw   = {}\n", numbers(tape.gradient(x)), numbers(tape.gradient(w)));
    fmt::print(out, "{} operations left; gradient of the constant: {}\n", tape.size(), tape.has_gradient(fixed));
  }
  {
    Tape tape(shop.step, Tape::Mode::inference);
    const Variable w = tape.leaf(tensor_of(shop.arena, {2, 2}, {-3.0, 1.0, 0.5, 2.0}));
    const Variable y = tanh(w);
    fmt::print(out, "inference: {} operations recorded\n", tape.size());
  }
  shop.arena.end_step();
}

}  // namespace engram::tour

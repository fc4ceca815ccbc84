/// Step 13: what a tape holds, printed; and where an error happened.

#include <fmt/ostream.h>

#include <vector>

#include "apps/tour/tour.hpp"
#include "apps/tour/values.hpp"
#include "apps/tour/workshop.hpp"
#include "autograd/functions.hpp"
#include "autograd/parameter_store.hpp"
#include "autograd/tape.hpp"
#include "autograd/tape_listing.hpp"
#include "core/error.hpp"
#include "core/scope.hpp"

namespace engram::tour {

void listed_tape(std::ostream& out, KernelObserver* observer) {
  Workshop shop(observer);
  Parameter inner({64, 16}, {Initializer::Kind::uniform, 0.25}), outer({16, 64}, {Initializer::Kind::uniform, 0.125});
  ParameterStore store;
  store.add("inner.weight", inner);
  store.add("outer.weight", outer);
  store.place(*shop.backend, DType::f64, /*seed=*/7);

  Tape tape(shop.step);
  tape.keep_scopes(true);
  const Variable x = tape.constant(tensor_of(shop.arena, {8, 16}, std::vector<double>(8 * 16, 1.0)));
  Variable y;
  {
    const Scope scope("feed_forward");
    y = linear(dropout(relu(linear(x, tape.parameter(inner))), 0.1), tape.parameter(outer));
  }
  const Variable loss = sum(add(x, y));
  fmt::print(out, "{}", tape_table(tape));
  try {
    const Scope layer("layers.3"), part("feed_forward");
    linear(x, tape.parameter(outer));
  } catch (const ShapeError& error) {
    fmt::print(out, "{}\n", error.what());
  }
  tape.backward({loss});  // for who observes it: autograd_tour --draw 13
}

}  // namespace engram::tour

/// Step 9: parameters, whose values and gradients outlive a step.

#include <fmt/ostream.h>

#include "apps/tour/tour.hpp"
#include "apps/tour/values.hpp"
#include "apps/tour/workshop.hpp"
#include "autograd/functions.hpp"
#include "autograd/parameter_store.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"

namespace engram::tour {
namespace {

void accumulate_gradient(Workshop& shop, Parameter& weight) {
  Tape tape(shop.step);
  const Variable x = tape.constant(tensor_of(shop.arena, {1, 2}, {1.0, -2.0}));
  tape.backward({sum(linear(x, tape.parameter(weight)))});
}

}  // namespace

void trained_values(std::ostream& out, KernelObserver* observer) {
  Workshop shop(observer);
  Parameter weight({2, 2}, {Initializer::Kind::uniform, 0.5}), forgotten({3}, {});
  ParameterStore store;
  store.add("layer.weight", weight);
  store.place(*shop.backend, DType::f64, /*seed=*/7);
  const ParameterGroup& group = store.groups()[0];
  fmt::print(out, "{} = {}\n", weight.name(), numbers(weight.value()));
  fmt::print(out, "group {}: {} values of {}\n", group.name, store.count(), text(group.values.shape()));

  accumulate_gradient(shop, weight);
  fmt::print(out, "gradient once:    {}\n", numbers(weight.gradient()));
  accumulate_gradient(shop, weight);
  fmt::print(out, "gradient twice:   {}\n", numbers(weight.gradient()));
  store.zero_gradients(shop.step);
  fmt::print(out, "gradient cleared: {}\n", numbers(weight.gradient()));
  shop.arena.end_step();
  try {
    accumulate_gradient(shop, forgotten);
  } catch (const Error& error) {
    fmt::print(out, "{}\n", error.what());
  }
}

}  // namespace engram::tour

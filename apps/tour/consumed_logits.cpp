/// Step 11: a loss that leaves its gradient where its input was.

#include <fmt/ostream.h>

#include <algorithm>
#include <utility>

#include "apps/tour/tour.hpp"
#include "apps/tour/values.hpp"
#include "apps/tour/workshop.hpp"
#include "autograd/functions.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"

namespace engram::tour {

void consumed_logits(std::ostream& out, KernelObserver* observer) {
  Workshop shop(observer);
  Tensor targets = shop.step.empty({2}, DType::i32);
  std::ranges::fill_n(targets.data<std::int32_t>(), 2, 1);
  const Tensor row_weight = tensor_of(shop.arena, {2}, {1.0, 0.0});  // the second row is padding

  Tape tape(shop.step);
  const Variable x = tape.leaf(tensor_of(shop.arena, {2, 3}, {1.0, 2.0, 0.5, 3.0, -1.0, 0.0}));
  Variable logits = scale(x, 1.0);
  const void* memory = logits.value().raw();
  try {
    cross_entropy(logits, targets, row_weight);
  } catch (const Error& error) {
    fmt::print(out, "{}\n", error.what());
  }
  const CrossEntropy result = cross_entropy(std::move(logits), targets, row_weight);
  fmt::print(out, "row losses {}, loss {}\n", numbers(result.row_loss), numbers(result.loss.value()));
  tape.backward({result.loss});
  fmt::print(out, "dx = {}\n", numbers(tape.gradient(x)));
  Tensor reused = shop.step.empty({2, 3}, DType::f64);
  fmt::print(out, "after backward the memory of the logits is free again: {}\n", reused.raw() == memory);
}

}  // namespace engram::tour

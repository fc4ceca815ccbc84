/// Step 10: dropout asks a counter-based generator twice instead of keeping its mask.

#include <fmt/ostream.h>

#include <string>
#include <vector>

#include "apps/tour/tour.hpp"
#include "apps/tour/values.hpp"
#include "apps/tour/workshop.hpp"
#include "autograd/functions.hpp"
#include "autograd/tape.hpp"
#include "autograd/tape_listing.hpp"

namespace engram::tour {
namespace {

constexpr std::int64_t kElements = 24;

/// '.' for what was dropped, 'x' for what was kept.
std::string pattern(const Tensor& tensor) {
  std::string marks;
  for (std::int64_t i = 0; i < tensor.count(); ++i) marks += tensor.data<double>()[i] == 0 ? '.' : 'x';
  return marks;
}

void drop(Workshop& shop, std::uint64_t step_number, std::ostream& out) {
  shop.step.begin({.step = step_number});
  Tape tape(shop.step);
  const Variable x = tape.leaf(tensor_of(shop.arena, {kElements}, std::vector<double>(kElements, 1.0)));
  const Variable y = dropout(x, 0.25), z = dropout(x, 0.25);
  fmt::print(out, "step {}, y  {}  z  {}  kept for backward: {} bytes\n", step_number, pattern(y.value()),
             pattern(z.value()), bytes_kept(tape));
  tape.backward({sum(y)});
  fmt::print(out, "       dx  {}\n", pattern(tape.gradient(x)));
}

}  // namespace

void dropped_elements(std::ostream& out, KernelObserver* observer) {
  Workshop shop(observer);
  drop(shop, 0, out);
  drop(shop, 1, out);
  drop(shop, 0, out);
}

}  // namespace engram::tour

/// Step 4: nothing is zero-filled; the first gradient of a value is set, further ones are added.

#include <fmt/ostream.h>

#include "apps/tour/counted_memory.hpp"
#include "apps/tour/target_tape.hpp"
#include "apps/tour/tour.hpp"
#include "apps/tour/values.hpp"

namespace engram::tour {

void gradient_targets(std::ostream& out) {
  CountedMemory memory;
  TargetTape tape(memory);
  const TargetVariable x = tape.record(tensor_of(memory, {2, 2}, {0.5, -1.0, 0.25, 0.75}), nullptr);
  const TargetVariable w = tape.record(tensor_of(memory, {2, 2}, {-3.0, 1.0, 0.5, 2.0}), nullptr);
  const std::size_t inputs = memory.live;
  const TargetVariable loss = sum(tanh(add(matmul(x, w), x)));
  tape.backward(loss);
  fmt::print(out, "{} targets said set, {} said add; {} bytes at most\n", tape.sets, tape.adds, memory.peak - inputs);
  fmt::print(out, "dx   = {}\ndw   = {}\n", numbers(tape.gradient(x)), numbers(tape.gradient(w)));
}

}  // namespace engram::tour

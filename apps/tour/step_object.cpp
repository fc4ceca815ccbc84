/// Step 6: what a kernel may need beside its tensors travels with it, in a Step.

#include <fmt/ostream.h>

#include "apps/tour/tour.hpp"
#include "core/arena.hpp"
#include "core/backend.hpp"
#include "core/error.hpp"
#include "core/step.hpp"

namespace engram::tour {

void step_object(std::ostream& out) {
  const auto backend = open_backend(parse_device("cpu"));
  HeapAllocator heap(*backend);
  Arena arena(heap), other_arena(heap);
  Step step(*backend, arena, /*seed=*/1);
  Step other(*backend, other_arena, /*seed=*/2);  // side by side: nothing is current

  step.begin({.step = 41, .learning_rate = 0.1f});
  const Tensor y = step.empty({2, 3}, DType::f32);
  fmt::print(out, "y: {} {} on {}\n", text(y.dtype()), text(y.shape()), text(step.device()));
  {
    const Workspace scratch = step.workspace(1000);
    fmt::print(out, "inside a kernel: {} bytes in use, {} in the other step\n", arena.bytes_in_use(),
               other_arena.bytes_in_use());
  }
  fmt::print(out, "after it: {} bytes in use\n", arena.bytes_in_use());
  for (int i = 0; i < 2; ++i)
    fmt::print(out, "step {}, operation {}\n", step.scalars()->step, step.next_random().operation);
  step.begin({.step = 42, .learning_rate = 0.1f});
  fmt::print(out, "step {}, operation {}\n", step.scalars()->step, step.next_random().operation);
}

}  // namespace engram::tour

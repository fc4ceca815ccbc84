/// Step 5: the memory of a step comes from an arena. Only the allocator of the tape changes.

#include <fmt/ostream.h>

#include "apps/tour/counted_memory.hpp"
#include "apps/tour/target_tape.hpp"
#include "apps/tour/tour.hpp"
#include "apps/tour/values.hpp"
#include "core/arena.hpp"
#include "core/error.hpp"

namespace engram::tour {
namespace {

/// One step; returns where the gradient of w was.
const void* train(Allocator& memory, const Tensor& input, const Tensor& weight) {
  TargetTape tape(memory);
  const TargetVariable x = tape.record(input, nullptr), w = tape.record(weight, nullptr);
  const TargetVariable loss = sum(tanh(add(matmul(x, w), x)));
  tape.backward(loss);
  return tape.gradient(w).raw();
}

}  // namespace

void step_memory(std::ostream& out) {
  CountedMemory heap;
  const Tensor x = tensor_of(heap, {2, 2}, {0.5, -1.0, 0.25, 0.75});
  const Tensor w = tensor_of(heap, {2, 2}, {-3.0, 1.0, 0.5, 2.0});

  int before = heap.requests;
  train(heap, x, w);
  fmt::print(out, "tape on the heap: {} requests to it per step\n", heap.requests - before);

  Arena arena(heap);
  const void* places[3];
  for (const void*& place : places) {
    before = heap.requests;
    place = train(arena, x, w);
    arena.end_step();
    fmt::print(out, "arena, requests to the heap: {}; bytes in use at most: {}\n", heap.requests - before,
               arena.peak_bytes());
  }
  fmt::print(out, "same addresses in every step: {}\n", places[0] == places[1] && places[1] == places[2]);

  const Tensor survivor({2, 2}, DType::f64, {DeviceKind::cpu}, arena);
  try {
    arena.end_step();
  } catch (const Error& error) {
    fmt::print(out, "{}\n", error.what());
  }
}

}  // namespace engram::tour

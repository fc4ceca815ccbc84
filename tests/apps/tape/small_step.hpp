#pragma once
/// A step of few numbers that can be recorded: loss = sum(tanh(x w + x)) with x = leaf 0 and w = leaf 1, as in step 8
/// of docs/guide/autograd-tour*.md, and others that are given.

#include <functional>
#include <memory>
#include <vector>

#include "apps/tape/tape_recorder.hpp"
#include "autograd/functions.hpp"
#include "core/arena.hpp"

namespace engram::harness {

inline Tensor small_tensor(Step& step, Shape shape, const std::vector<double>& values) {
  Tensor x = step.empty(shape, DType::f64);
  step.backend().copy(x.data<double>(), values.data(), x.bytes(), CopyKind::host_to_device);
  return x;
}

/// Runs backward from what `loss` makes on a new tape of a new step.
inline TapeStep small_step(std::function<Variable(Tape&)> loss) {
  return [loss = std::move(loss)](TapeObserver& observer) {
    const std::unique_ptr<Backend> backend = open_backend({});
    HeapAllocator heap(*backend);
    Arena arena(heap);
    Step step(*backend, arena, /*seed=*/1);
    step.begin({});
    step.observe(&observer);
    Tape tape(step);
    const Variable last = loss(tape);
    tape.backward({last});
  };
}

inline Variable tour_loss(Tape& tape) {
  const Variable x = tape.leaf(small_tensor(tape.step(), {2, 2}, {0.5, -1.0, 0.25, 0.75}));
  const Variable w = tape.leaf(small_tensor(tape.step(), {2, 2}, {-3.0, 1.0, 0.5, 2.0}));
  return sum(tanh(add(matmul(x, w), x)));
}

}  // namespace engram::harness

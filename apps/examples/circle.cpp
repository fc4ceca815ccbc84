/// A network of two layers learns which points of a grid lie inside a circle.

#include <cstdio>
#include <engram/engram.hpp>

using namespace engram;

struct CircleNet final : Module {
  Linear inner{2, 16}, outer{16, 2};
  Variable forward(const Variable& points) { return outer.forward(tanh(inner.forward(points))); }
  void visit(Visitor& visit) override {
    visit("inner", inner);
    visit("outer", outer);
  }
};

int main() {
  constexpr std::int64_t kSide = 12, kPoints = kSide * kSide;
  const auto backend = open_backend({DeviceKind::cpu});
  HeapAllocator heap(*backend);
  Arena arena(heap);  // memory of a step
  Step step(*backend, arena, /*seed=*/1);
  Tensor points({kPoints, 2}, DType::f32, backend->device(), heap),
      inside({kPoints}, DType::i32, backend->device(), heap), weights({kPoints}, DType::f32, backend->device(), heap);
  for (std::int64_t i = 0; i < kPoints; ++i) {
    const float x = 2.0f * static_cast<float>(i % kSide) / (kSide - 1) - 1;
    const float y = 2.0f * static_cast<float>(i / kSide) / (kSide - 1) - 1;
    points.data<float>()[2 * i] = x;
    points.data<float>()[2 * i + 1] = y;
    inside.data<std::int32_t>()[i] = x * x + y * y < 0.6f;
    weights.data<float>()[i] = 1.0f / kPoints;
  }
  CircleNet net;
  ParameterStore store;
  collect(net, store);
  store.place(*backend, DType::f32, /*seed=*/1);
  OptimizerOptions rule;
  rule.kind = OptimizerKind::adam;
  rule.clip_kind = ClipKind::global;
  const auto optimizer = make_optimizer(rule, store, step);
  double first = 0, loss = 0;
  for (std::uint64_t update = 0; update <= 300; ++update) {
    step.begin({.step = update, .learning_rate = 0.05});
    store.zero_gradients(step);
    {
      Tape tape(step);
      const CrossEntropy result = cross_entropy(net.forward(tape.constant(points)), inside, weights);
      tape.backward({result.loss});
      loss = result.loss.value().data<float>()[0];
    }  // nothing of the step may be left when it ends
    optimizer->update(step);
    arena.end_step();
    if (update == 0) first = loss;
    if (update % 100 == 0) std::printf("update %3d: loss %.3f\n", static_cast<int>(update), loss);
  }
  return loss < first / 10 ? 0 : 1;
}

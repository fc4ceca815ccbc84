/// A product-key memory alone, without a model around it: 200 vectors are given, and it learns what belongs to each.

#include <cmath>
#include <cstdio>
#include <engram/engram.hpp>
#include <random>
#include <set>

using namespace engram;

int main() {
  constexpr std::int64_t kWidth = 16, kFacts = 200;
  const auto backend = open_backend({DeviceKind::cpu});
  HeapAllocator heap(*backend);
  Arena arena(heap);
  Step step(*backend, arena, /*seed=*/1);

  Tensor questions({kFacts, kWidth}, DType::f32, backend->device(), heap);
  Tensor answers({kFacts, kWidth}, DType::f32, backend->device(), heap);
  std::mt19937 random(1);
  for (Tensor* numbers : {&questions, &answers})
    for (std::int64_t i = 0; i < numbers->count(); ++i)
      numbers->data<float>()[i] = static_cast<float>(random()) / static_cast<float>(random.max()) * 2 - 1;

  // 32 x 32 slots; each of two heads reads the four whose keys are nearest to its query.
  ProductKeyOptions options;
  options.subkeys = 32;
  options.heads = 2;
  options.selected = 4;
  options.query_width = 16;
  options.query_norm = QueryNorm::none;
  ProductKeyMemory memory(options, kWidth);
  ParameterStore store;
  collect(memory, store);
  store.place(*backend, DType::f32, /*seed=*/1);
  OptimizerOptions rule;
  rule.kind = OptimizerKind::adam;
  rule.clip_kind = ClipKind::global;
  rule.tables.rate = 0.02;  // of the values, each of which few questions read
  const auto optimizer = make_optimizer(rule, store, step);

  double first = 0, loss = 0;
  std::set<std::int64_t> read;
  for (std::uint64_t update = 0; update <= 200; ++update) {
    step.begin({.step = update, .learning_rate = 0.002});
    store.zero_gradients(step);
    {
      Tape tape(step);
      MemoryTrace trace;
      const Variable answered = memory.forward(tape.constant(questions), {}, &trace);
      const Variable error = add(answered, scale(tape.constant(answers), -1));
      const Variable squares = sum(multiply(error, error), 1.0 / (kFacts * kWidth));
      tape.backward({squares});
      loss = squares.value().data<float>()[0];
      const std::vector<std::int64_t> slots = host_copy<std::int64_t>(*backend, trace.ids);
      read = {slots.begin(), slots.end()};
    }
    optimizer->update(step);
    arena.end_step();
    if (update == 0) first = loss;
    if (update % 50 == 0)
      std::printf("update %3d: mean squared error %.4f, %zu of %lld slots are read\n", static_cast<int>(update), loss,
                  read.size(), static_cast<long long>(options.slots()));
  }
  return loss < first / 4 ? 0 : 1;
}

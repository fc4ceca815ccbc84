/// T21 of [all-attention 12]: tokens are random, each target is the token `lag` positions before. Spans decide what
/// can be learned: one that starts long enough finds a distant dependency, one that starts at 0 cannot, and a strong
/// span loss keeps spans short without hurting a near one.

#include <algorithm>
#include <cmath>

#include "apps/run/training/trainer.hpp"
#include "nn/visitor.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::harness::learning_test {
namespace {

constexpr std::int64_t kSymbols = 8;
constexpr int kRows = 8, kBlock = 64;

struct Task {
  int lag;
  double span_init, span_loss;
  int steps;
};

struct Learned {
  double accuracy = 0;        // over the blocks after training
  std::vector<double> spans;  // z of each head, positions
};

/// Endless random streams and what is to be said about them.
class LagStream {
 public:
  explicit LagStream(int lag) : lag_(lag), random_(17), past_(kRows) {}

  void next(data::Block& block) {
    block.zero_caches = block.inputs.empty();
    block.rows = kRows;
    block.length = kBlock;
    block.inputs.clear();
    block.targets.clear();
    block.scored.assign(kRows * kBlock, 1);
    block.scored_count = kRows * kBlock;
    for (std::vector<std::int32_t>& tokens : past_) {
      for (int m = 0; m < kBlock; ++m) {
        tokens.push_back(static_cast<std::int32_t>(random_.below(kSymbols)));
        block.inputs.push_back(tokens.back());
        const std::size_t before = tokens.size() - 1 - std::size_t(lag_);
        block.targets.push_back(tokens.size() > std::size_t(lag_) ? tokens[before] : 0);
      }
    }
  }

 private:
  int lag_;
  reference::RandomArrays random_;
  std::vector<std::vector<std::int32_t>> past_;
};

/// Share of a block's targets that the model finds the most probable.
double accuracy_of(AllAttentionModel& model, Runtime& runtime, ModelPast& past, const data::Block& block) {
  Step& step = runtime.step();
  step.begin({});
  double right = 0;
  {
    Tape tape(step, Tape::Mode::inference);
    Tensor inputs = step.empty({kRows, kBlock}, DType::i32);
    runtime.backend().copy(inputs.raw(), block.inputs.data(), inputs.bytes(), CopyKind::host_to_device);
    const reference::Array64 logits = to_host(runtime.backend(), model.forward(tape, inputs, past).value());
    for (std::size_t i = 0; i < block.targets.size(); ++i) {
      const auto row = logits.data.begin() + std::ptrdiff_t(i) * kSymbols;
      right += std::max_element(row, row + kSymbols) - row == block.targets[i];
    }
  }
  runtime.arena().end_step();
  return right / double(block.targets.size());
}

Learned learn(const Task& task) {
  RunConfig config;
  config.model.all_attention.vocabulary = kSymbols;
  config.model.all_attention.layers = 1;
  config.model.all_attention.width = 64;
  config.model.all_attention.heads = 2;
  config.model.all_attention.slots = 16;
  config.model.all_attention.max_span = 256;
  config.model.all_attention.span_init = task.span_init;
  config.optimizer.kind = OptimizerKind::adam;
  config.optimizer.clip_kind = ClipKind::global;
  config.schedule.rate = 2e-3;
  config.schedule.steps = task.steps;
  config.training.batch = kRows;
  config.training.block = kBlock;
  config.training.span_loss = task.span_loss;
  config.check();
  Runtime runtime({}, 1);
  ParameterStore store;
  AllAttentionModel model(config.model.all_attention);
  collect(model, store);
  store.place(runtime.backend(), DType::f32, 1);
  Trainer trainer(config, model, store, runtime);
  LagStream stream(task.lag);
  data::Block block;
  for (int k = 0; k < task.steps; ++k) {
    stream.next(block);
    trainer.step(block);
  }
  Learned learned;
  // The caches of training hold what came before these blocks.
  constexpr int kMeasured = 20;
  for (int k = 0; k < kMeasured; ++k) {
    stream.next(block);
    learned.accuracy += accuracy_of(model, runtime, trainer.pasts()[0], block) / kMeasured;
  }
  for (const double zeta : model.span(0).zeta()) learned.spans.push_back(256 * zeta);
  return learned;
}

TEST_CASE("T21: a span that starts long enough learns a dependency 40 positions away", "[slow]") {
  const Learned learned = learn({.lag = 40, .span_init = 0.5, .span_loss = 1e-5, .steps = 1500});
  CHECK(learned.accuracy > 0.99);
  CHECK(std::ranges::max(learned.spans) > 7);
}

TEST_CASE("T21: a span of 0 cannot discover a dependency beyond its ramp", "[night]") {
  const Learned learned = learn({.lag = 40, .span_init = 0, .span_loss = 1e-5, .steps = 400});
  CHECK(learned.accuracy < 0.2);
}

TEST_CASE("T21: a strong span loss shortens spans that are not needed", "[night]") {
  const Learned learned = learn({.lag = 8, .span_init = 0.5, .span_loss = 1e-3, .steps = 400});
  CHECK(learned.accuracy > 0.99);
  CHECK(std::ranges::max(learned.spans) < 5);
}

}  // namespace
}  // namespace engram::harness::learning_test

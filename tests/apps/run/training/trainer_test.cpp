/// One training step: T17 of [all-attention 12] (a split batch is the same batch), and the order of a step.

#include "apps/run/training/trainer.hpp"

#include <cmath>
#include <limits>
#include <map>

#include "nn/visitor.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"
#include "tests/reference/central_differences.hpp"

namespace engram::harness::trainer_test {
namespace {

RunConfig small(std::int64_t split) {
  RunConfig config;
  config.model.all_attention.vocabulary = 7;
  config.model.all_attention.layers = 2;
  config.model.all_attention.width = 8;
  config.model.all_attention.heads = 2;
  config.model.all_attention.slots = 3;
  config.model.all_attention.max_span = 20;
  config.model.all_attention.ramp = 4;
  config.model.all_attention.span_init = 0.4;
  config.schedule.rate = 0.0625;
  config.schedule.steps = 100;
  config.training.batch = 4;
  config.training.block = 6;
  config.training.split = split;
  config.training.span_loss = 0.001;
  return config;
}

data::Block random_block(std::uint64_t seed, bool zero_caches = false) {
  reference::RandomArrays random(seed);
  data::Block block{.rows = 4,
                    .length = 6,
                    .inputs = {},
                    .targets = {},
                    .scored = {},
                    .scored_count = 24,
                    .zero_caches = zero_caches};
  for (int i = 0; i < 24; ++i) {
    block.inputs.push_back(static_cast<std::int32_t>(random.below(7)));
    block.targets.push_back(static_cast<std::int32_t>(random.below(7)));
    block.scored.push_back(1);
  }
  return block;
}

struct TrainerBench {
  RunConfig config;
  Runtime runtime{{}, 1, 5};
  ParameterStore store;
  AllAttentionModel model;
  std::unique_ptr<Trainer> trainer;

  explicit TrainerBench(const RunConfig& with) : config(with), model(config.model.all_attention) {
    collect(model, store);
    store.place(runtime.backend(), DType::f64, 3);
    trainer = std::make_unique<Trainer>(config, model, store, runtime);
  }
  std::map<std::string, reference::Array64> gradients() {
    std::map<std::string, reference::Array64> all;
    for (const auto& [name, parameter] : store.parameters())
      all[name] = to_host(runtime.backend(), parameter->gradient());
    return all;
  }
};

TEST_CASE("T17: a batch in 1, 2 or 4 pieces has the same loss and gradients") {
  TrainerBench whole(small(1));
  const StepLosses first = whole.trainer->accumulate(random_block(1, true));
  const StepLosses second = whole.trainer->accumulate(random_block(2));
  const auto expected = whole.gradients();
  for (const std::int64_t split : {2, 4}) {
    TrainerBench pieces(small(split));
    CHECK(pieces.trainer->accumulate(random_block(1, true)).nll == Approx(first.nll).epsilon(1e-13));
    const StepLosses losses = pieces.trainer->accumulate(random_block(2));
    CHECK(losses.nll == Approx(second.nll).epsilon(1e-13));
    CHECK(losses.span_loss == Approx(second.span_loss).epsilon(1e-13));
    for (const auto& [name, gradient] : pieces.gradients()) {
      CAPTURE(split, name);
      CHECK(reference::norm(expected.at(name)) > 0);
      CHECK(reference::distance_between(gradient, expected.at(name)) < 1e-12 * reference::norm(expected.at(name)));
    }
  }
  CHECK(second.span_loss == Approx(0.001 * 20 * 2 * 0.4).epsilon(1e-12));
}

TEST_CASE("a step updates the weights and carries the caches on; zero_caches forgets them") {
  TrainerBench bench(small(2));
  const double before = bench.trainer->accumulate(random_block(1, true)).nll;
  const double after_itself = bench.trainer->accumulate(random_block(1)).nll;
  CHECK(after_itself != before);
  CHECK(bench.trainer->accumulate(random_block(1, true)).nll == before);
  CHECK(bench.trainer->steps() == 0);
  CHECK(bench.trainer->next_rate() == 0.0625);
  double last = bench.trainer->step(random_block(1, true)).nll;
  CHECK(last == before);
  for (int k = 0; k < 30; ++k) last = bench.trainer->step(random_block(1, true)).nll;
  CHECK(last < before - 0.5);
  CHECK(bench.trainer->steps() == 31);
  CHECK(bench.runtime.arena().bytes_in_use() == 0);
}

TEST_CASE("dropout draws other numbers in every step and piece, the same ones for the same step") {
  RunConfig config = small(2);
  config.model.all_attention.dropout = 0.5;
  config.schedule.rate = 1e-30;  // the weights stay
  TrainerBench bench(config);
  const double first = bench.trainer->accumulate(random_block(1, true)).nll;
  CHECK(bench.trainer->accumulate(random_block(1, true)).nll == first);
  bench.trainer->step(random_block(1, true));
  CHECK(bench.trainer->accumulate(random_block(1, true)).nll != first);
}

TEST_CASE("a loss that is not finite stops before the weights are touched") {
  TrainerBench bench(small(1));
  const Parameter& bias = *bench.store.find("output.bias");
  reference::Array64 before = to_host(bench.runtime.backend(), bias.value());
  bias.value().data<double>()[2] = std::numeric_limits<double>::infinity();
  CHECK_THROWS_AS(bench.trainer->step(random_block(1, true)), Diverged);
  CHECK(bench.trainer->steps() == 0);
  CHECK(to_host(bench.runtime.backend(), bias.value()).data[1] == before.data[1]);
}

TEST_CASE("a block of another number of rows is refused") {
  TrainerBench bench(small(1));
  data::Block block = random_block(1);
  block.rows = 3;
  CHECK_THROWS_AS(bench.trainer->step(block), Error);
}

TEST_CASE("the tape of a step is shown once, with its scopes") {
  TrainerBench bench(small(2));
  int shown = 0;
  std::size_t operations = 0;
  std::string scope;
  bench.trainer->view_tape([&](const Tape& tape) {
    ++shown;
    operations = tape.size();
    scope = tape.entry(1).scope;
  });
  bench.trainer->step(random_block(1, true));
  bench.trainer->step(random_block(2));
  CHECK(shown == 1);
  CHECK(operations > 10);
  CHECK(scope == "layers.0/attention");
}

TEST_CASE("a mean of weights is refused for a model with tables") {
  RunConfig config = small(1);
  config.training.weight_average = true;
  Runtime runtime{{}, 1, 5};
  ParameterStore store;
  AllAttentionModel model(config.model.all_attention);
  Parameter table({3, 4}, Initializer{Initializer::Kind::normal, 1}, Gradient::rows);
  collect(model, store);
  store.add("a_table", table);
  store.place(runtime.backend(), DType::f32, 3);
  CHECK_THROWS_WITH(Trainer(config, model, store, runtime),
                    ContainsSubstring("training.weight_average") && ContainsSubstring("a_table"));
  config.training.weight_average = false;
  CHECK_NOTHROW(Trainer(config, model, store, runtime));
}

}  // namespace
}  // namespace engram::harness::trainer_test

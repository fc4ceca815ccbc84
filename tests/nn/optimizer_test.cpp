/// The optimiser classes over a parameter store: T9 and T16 of [all-attention 12], and random runs against the
/// executable definitions of the update rules.

#include <cmath>

#include "core/log.hpp"
#include "nn/optim/make_optimizer.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_model.hpp"
#include "tests/reference/optimizers.hpp"

namespace engram::harness::optimizer_test {
namespace {

struct OptimizerBench : Bench {
  ParameterStore store;  // before the parameters, whose memory it owns
  Parameter first{{2}, Initializer{Initializer::Kind::constant, 1}};
  Parameter second{{3, 70}, Initializer{Initializer::Kind::normal, 1}};
  Parameter span{{2}, Initializer{Initializer::Kind::constant, 0.5}, "spans"};
  std::unique_ptr<Optimizer> optimizer;
  std::int64_t updates = 0;

  explicit OptimizerBench(const OptimizerOptions& options, DType dtype = DType::f64) {
    store.add("first", first);
    store.add("second", second);
    store.add("span", span);
    store.place(*backend, dtype, 5);
    optimizer = make_optimizer(options, store, step);
  }
  void update(double rate) {
    step.begin({.step = static_cast<std::uint64_t>(updates++), .learning_rate = rate});
    optimizer->update(step);
  }
  reference::Array64 state(const std::string& wanted) {
    reference::Array64 found;
    optimizer->visit_state([&](const std::string& name, const Tensor& tensor, const auto&) {
      if (name == wanted) found = read(tensor);
    });
    return found;
  }
};

OptimizerOptions options_of(OptimizerKind kind, double clip) {
  OptimizerOptions options;
  options.kind = kind;
  options.clip = clip;
  if (kind != OptimizerKind::adagrad) options.clip_kind = ClipKind::global;
  return options;
}

TEST_CASE("spans have a learning rate of their own") {
  for (const OptimizerKind kind : {OptimizerKind::adagrad, OptimizerKind::adam, OptimizerKind::sgd}) {
    const auto moved = [kind](double share) {
      OptimizerOptions options = options_of(kind, 0);
      options.span_rate_share = share;
      OptimizerBench bench(options);
      bench.write(bench.span.value(), reference::constant(0.5, {2}));
      const double before = bench.read(bench.first.value()).data[0];
      bench.write(bench.first.gradient(), reference::array({2}, {0.5, 0.5}));
      bench.write(bench.span.gradient(), reference::constant(0.5, {2}));
      bench.update(0.125);
      return std::pair{bench.read(bench.first.value()).data[0] - before, bench.read(bench.span.value()).data[0] - 0.5};
    };
    CAPTURE(int(kind));
    CHECK(moved(1).second == Approx(moved(1).first));
    CHECK(moved(0.25).first == Approx(moved(1).first));
    CHECK(moved(0.25).second == Approx(0.25 * moved(1).second));
    CHECK(moved(0).second == 0);
  }
}

TEST_CASE("weight decay leaves the group undecayed alone") {
  Bench bench;
  ParameterStore store;
  Parameter decayed{{2}, Initializer{Initializer::Kind::constant, 1}};
  Parameter kept{{2}, Initializer{Initializer::Kind::constant, -4}, "undecayed"};
  store.add("decayed", decayed);
  store.add("kept", kept);
  store.place(*bench.backend, DType::f64, 5);
  OptimizerOptions options = options_of(OptimizerKind::adam, 0);
  options.weight_decay = 0.5;
  const auto optimizer = make_optimizer(options, store, bench.step);
  store.zero_gradients(bench.step);
  bench.step.begin({.step = 0, .learning_rate = 0.125f});
  optimizer->update(bench.step);
  CHECK(bench.read(decayed.value()).data[0] == Approx(1 - 0.125 * 0.5));
  CHECK(bench.read(kept.value()).data[0] == -4);
}

TEST_CASE(
    "an update without a begun step is refused and changes nothing; a number that comes again is warned of once") {
  OptimizerBench bench(options_of(OptimizerKind::adam, 0));
  bench.write(bench.first.gradient(), reference::array({2}, {3, 4}));
  const std::vector<double> before = bench.read(bench.first.value()).data;
  CHECK_THROWS_WITH(bench.optimizer->update(bench.step),
                    ContainsSubstring("must be part of a step that was begun") && ContainsSubstring("step.begin("));
  CHECK(bench.read(bench.first.value()).data == before);

  std::string said;
  const LogSink others = send_log_to([&said](LogLevel, std::string_view message) { said += message; });
  bench.step.begin({.step = 7, .learning_rate = 0.125});  // as a training that goes on
  bench.optimizer->update(bench.step);
  CHECK(bench.read(bench.first.value()).data != before);
  bench.step.begin({.step = 8, .learning_rate = 0});  // a rate of 0 that was asked for
  bench.optimizer->update(bench.step);
  CHECK(said.empty());
  for (int time = 0; time < 3; ++time) bench.optimizer->update(bench.step);
  send_log_to(others);
  CHECK(said ==
        "optimizer: every update should have a number of its own, got 8 twice\n"
        "  step.begin({.step = NUMBER, .learning_rate = RATE}) begins each, from 0 on");
}

TEST_CASE("T9: Adagrad shrinks the step of a long gradient, its accumulator sees the raw one") {
  OptimizerBench bench(options_of(OptimizerKind::adagrad, 0.03));
  bench.write(bench.first.gradient(), reference::array({2}, {3, 4}));
  bench.update(0.125);  // a rate that a float holds
  const double eta = 0.125 * 0.03 / 5;
  CHECK(bench.read(bench.first.value()).data[0] == Approx(1 - eta).epsilon(1e-10));
  CHECK(bench.read(bench.first.value()).data[1] == Approx(1 - eta).epsilon(1e-10));
  CHECK(bench.state("first.squared_gradient_sum").data == std::vector<double>{9, 16});

  bench.write(bench.first.gradient(), reference::array({2}, {.003, .004}));
  bench.update(0.125);
  CHECK(bench.read(bench.first.value()).data[0] == Approx(1 - eta - 0.125 * .003 / std::sqrt(9.000009)).epsilon(1e-10));
  CHECK(bench.state("first.squared_gradient_sum").data[1] == Approx(16.000016).epsilon(1e-12));

  OptimizerOptions conventional = options_of(OptimizerKind::adagrad, 0.03);
  conventional.clip_kind = ClipKind::per_tensor_gradient;
  OptimizerBench other(conventional);
  other.write(other.first.gradient(), reference::array({2}, {3, 4}));
  other.update(0.125);
  CHECK(other.read(other.first.value()).data[0] == Approx(1 - 0.125).epsilon(1e-7));
}

TEST_CASE("T9 with its own numbers") {
  OptimizerBench bench(options_of(OptimizerKind::adagrad, 0.03));
  bench.write(bench.first.gradient(), reference::array({2}, {3, 4}));
  bench.update(0.1);
  for (const double value : bench.read(bench.first.value()).data) CHECK(value == Approx(.9994).epsilon(1e-12));
  bench.write(bench.first.gradient(), reference::array({2}, {.003, .004}));
  bench.update(0.1);
  for (const double value : bench.read(bench.first.value()).data) CHECK(value == Approx(.9993).epsilon(1e-9));
}

TEST_CASE("update rules equal their definitions over several steps") {
  for (const OptimizerKind kind : {OptimizerKind::adagrad, OptimizerKind::adam, OptimizerKind::sgd}) {
    for (const double clip : {0.0, 2.0}) {
      CAPTURE(int(kind), clip);
      OptimizerOptions options = options_of(kind, clip);
      options.momentum = 0.75;
      OptimizerBench bench(options);
      reference::RandomArrays random(31);
      reference::Array64 values[2] = {bench.read(bench.first.value()), bench.read(bench.second.value())};
      reference::Array64 state[2][2];
      for (int p = 0; p < 2; ++p)
        for (auto& array : state[p]) array = reference::zeros(values[p].shape);
      for (std::int64_t t = 1; t <= 5; ++t) {
        std::vector<reference::Array64> gradients{random.array({2}), random.array({3, 70})};
        bench.write(bench.first.gradient(), gradients[0]);
        bench.write(bench.second.gradient(), gradients[1]);
        bench.update(0.0625);
        if (kind != OptimizerKind::adagrad) reference::clip_global(gradients, clip);
        for (std::size_t p = 0; p < 2; ++p) {
          if (kind == OptimizerKind::adagrad)
            reference::adagrad(values[p], gradients[p], state[p][0], {.rate = 0.0625, .clip = clip});
          else if (kind == OptimizerKind::adam)
            reference::adam(values[p], gradients[p], state[p][0], state[p][1], t, {.rate = 0.0625});
          else
            reference::sgd(values[p], gradients[p], state[p][0], 0.0625, 0.75);
        }
      }
      CHECK(largest_difference(bench.read(bench.first.value()), values[0]) < 1e-12);
      CHECK(largest_difference(bench.read(bench.second.value()), values[1]) < 1e-12);
    }
  }
}

TEST_CASE("Nesterov's momentum through the optimiser, spans at a rate of their own") {
  OptimizerOptions options = options_of(OptimizerKind::sgd, 2);
  options.momentum = 0.75;
  options.nesterov = true;
  options.span_rate_share = 0.5;
  OptimizerBench bench(options);
  reference::RandomArrays random(31);
  reference::Array64 value = bench.read(bench.second.value()), point = value, speed = reference::zeros(value.shape);
  bench.write(bench.span.value(), reference::constant(0.5, {2}));
  reference::Array64 span = reference::constant(0.5, {2}), span_point = span, span_speed = reference::zeros({2});
  for (int t = 0; t < 5; ++t) {
    std::vector<reference::Array64> gradients{random.array({3, 70}), random.array({2})};
    bench.write(bench.second.gradient(), gradients[0]);
    bench.write(bench.span.gradient(), gradients[1]);
    bench.update(0.03125);
    reference::clip_global(gradients, 2);
    reference::nesterov(value, point, gradients[0], speed, 0.03125, 0.75);
    reference::nesterov(span, span_point, gradients[1], span_speed, 0.015625, 0.75);
  }
  CHECK(largest_difference(bench.read(bench.second.value()), value) < 1e-12);
  CHECK(largest_difference(bench.read(bench.span.value()), span) < 1e-12);
}

TEST_CASE("Adam adds epsilon to the root that the options say") {
  for (const EpsilonAt at : {EpsilonAt::corrected, EpsilonAt::uncorrected}) {
    OptimizerOptions options = options_of(OptimizerKind::adam, 0);
    options.epsilon = 0.01;
    options.epsilon_at = at;
    OptimizerBench bench(options);
    reference::RandomArrays random(31);
    reference::Array64 value = bench.read(bench.second.value()), m = reference::zeros(value.shape), v = m;
    for (std::int64_t t = 1; t <= 5; ++t) {
      const reference::Array64 gradient = random.array({3, 70});
      bench.write(bench.second.gradient(), gradient);
      bench.update(0.07);
      reference::adam(value, gradient, m, v, t,
                      {.rate = 0.07, .epsilon = 0.01, .corrected_root = at == EpsilonAt::corrected});
    }
    CHECK(largest_difference(bench.read(bench.second.value()), value) < 1e-13);
  }
}

TEST_CASE("T16: without a task gradient spans shrink by rate / sqrt(k) to exactly 0") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    OptimizerBench bench(options_of(OptimizerKind::adagrad, 0), dtype);
    const double expected[] = {.43, .3805025, .3400880};
    double last = 0.5;
    for (int k = 0; k < 60; ++k) {
      bench.write(bench.span.gradient(), reference::constant(1e-7 * 8192 / 8, {2}));
      bench.update(0.07);
      last = bench.read(bench.span.value()).data[0];
      if (k < 3) CHECK(last == Approx(expected[k]).margin(1e-6));
      CHECK(last >= 0);
    }
    CHECK(last == 0);
  }
}

TEST_CASE("spans stay in [0, 1], other parameters are free, a NaN is not hidden") {
  OptimizerBench bench(options_of(OptimizerKind::sgd, 0));
  bench.write(bench.span.gradient(), reference::array({2}, {-100, std::nan("")}));
  bench.write(bench.first.gradient(), reference::array({2}, {-100, 100}));
  bench.update(1);
  CHECK(bench.read(bench.span.value()).data[0] == 1);
  CHECK(std::isnan(bench.read(bench.span.value()).data[1]));
}

TEST_CASE("gradient norms are those of the last update; a gradient of zero changes nothing") {
  OptimizerBench bench(options_of(OptimizerKind::adagrad, 0.03));
  bench.write(bench.first.gradient(), reference::array({2}, {3, 4}));
  bench.write(bench.second.gradient(), reference::zeros({3, 70}));
  bench.write(bench.span.gradient(), reference::zeros({2}));
  const reference::Array64 before = bench.read(bench.second.value());
  bench.update(0.5);
  double largest = 0;
  for (const double norm : bench.optimizer->gradient_norms(*bench.backend)) largest = std::max(largest, norm);
  CHECK(largest == Approx(5).epsilon(1e-12));
  CHECK(bench.read(bench.second.value()).data == before.data);
}

TEST_CASE("options of optimisers that make no sense are refused by name") {
  const auto message = [](auto change) {
    OptimizerOptions options;
    change(options);
    try {
      options.check();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(message([](OptimizerOptions&) {}).empty());
  CHECK_THAT(message([](OptimizerOptions& o) { o.clip = -1; }), ContainsSubstring("clip") && ContainsSubstring("-1"));
  CHECK_THAT(message([](OptimizerOptions& o) { o.beta2 = 1; }), ContainsSubstring("beta2"));
  CHECK_THAT(message([](OptimizerOptions& o) { o.epsilon = 0; }), ContainsSubstring("epsilon"));
  CHECK_THAT(message([](OptimizerOptions& o) { o.momentum = 1.5; }), ContainsSubstring("momentum"));
  const auto nesterov = [](double momentum) {
    return [momentum](OptimizerOptions& o) {
      o = options_of(OptimizerKind::sgd, 0);
      o.nesterov = true;
      o.momentum = momentum;
    };
  };
  CHECK_THAT(message(nesterov(0)), ContainsSubstring("nesterov needs momentum above 0, got momentum 0"));
  CHECK(message(nesterov(0.5)).empty());
  CHECK_THAT(message([](OptimizerOptions& o) { o.clip_kind = ClipKind::global; }), ContainsSubstring("clip_kind"));
  CHECK_THAT(message([](OptimizerOptions& o) { o.kind = OptimizerKind::adam; }), ContainsSubstring("clip_kind"));
}

}  // namespace
}  // namespace engram::harness::optimizer_test

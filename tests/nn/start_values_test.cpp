/// What layers start as when they are told: [transformer-xl 4.1].

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "nn/layers/feed_forward.hpp"
#include "nn/layers/layer_norm.hpp"
#include "nn/layers/self_attention.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_model.hpp"

namespace engram::harness::start_values_test {
namespace {

struct StartBench : Bench {
  ParameterStore store;

  /// The values of a parameter of `layer`, which must outlive this use.
  reference::Array64 start_of(Module& layer, const char* name) {
    collect(layer, store);
    store.place(*backend, DType::f64, 5);
    return read(store.find(name)->value());
  }
  reference::Array64 value(const char* name) { return read(store.find(name)->value()); }
};

struct Moments {
  double mean = 0, deviation = 0;
};
Moments moments(const reference::Array64& x) {
  Moments found;
  for (const double value : x.data) found.mean += value / double(x.count());
  for (const double value : x.data) found.deviation += std::pow(value - found.mean, 2) / double(x.count());
  found.deviation = std::sqrt(found.deviation);
  return found;
}

double largest(const reference::Array64& x) {
  double found = 0;
  for (const double value : x.data) found = std::max(found, std::abs(value));
  return found;
}

TEST_CASE("layer norm: gain 1 and bias 0, or a gain of N(1, s^2)") {
  StartBench plain, noisy;
  LayerNorm usual(4000), xl(4000, init::normal(0.02, 1));
  CHECK(plain.start_of(usual, "gain").data == std::vector<double>(4000, 1));
  CHECK(plain.value("bias").data == std::vector<double>(4000, 0));
  const Moments gain = moments(noisy.start_of(xl, "gain"));
  CHECK(gain.mean == Approx(1).margin(5 * 0.02 / std::sqrt(4000.0)).epsilon(0));
  CHECK(gain.deviation == Approx(0.02).epsilon(0.06));  // five deviations of it
  CHECK(noisy.value("bias").data == std::vector<double>(4000, 0));
}

TEST_CASE("layer norm: epsilon is added to the variance") {
  StartBench bench;
  LayerNorm norm(2, init::ones(), 3);
  bench.start_of(norm, "gain");
  Tape tape(bench.step);
  const Variable x = tape.constant(bench.tensor(reference::array({1, 2}, {-1, 1})));  // variance 1
  const Variable none = tape.constant(bench.tensor(reference::zeros({1, 2})));
  CHECK(bench.read(norm.forward(x, none).value()).data[1] == Approx(0.5).epsilon(1e-14));
  CHECK_THROWS_AS(LayerNorm(2, init::ones(), 0), UsageError);
  CHECK_THROWS_AS(LayerNorm(2, init::ones(), std::nan("")), UsageError);
}

TEST_CASE("self-attention: matrices start within 1/sqrt(d), or within sqrt(d)") {
  StartBench released, printed;
  SelfAttentionOptions options{.width = 64, .heads = 4, .span = {.max_span = 8}};
  SelfAttention usual(options);
  options.start = AttentionStart::root;
  SelfAttention wide(options);
  released.start_of(usual, "query");
  printed.start_of(wide, "query");
  for (const char* name : {"query", "key", "value", "output"}) {
    CAPTURE(name);
    CHECK(largest(released.value(name)) == Approx(1 / 8.0).epsilon(0.01));
    CHECK(largest(printed.value(name)) == Approx(8).epsilon(0.01));
    CHECK(moments(printed.value(name)).deviation == Approx(8 / std::sqrt(3.0)).epsilon(0.05));
  }
}

TEST_CASE("feed-forward: weights and biases start uniform in +-1/sqrt(in), or as told") {
  StartBench plain, told;
  FeedForward usual(64, 100, {}), xl(64, 100, {}, {init::normal(0.02), init::zeros()});
  CHECK(largest(plain.start_of(usual, "inner.weight")) == Approx(1 / 8.0).epsilon(0.01));
  CHECK(largest(plain.value("outer.weight")) == Approx(1 / 10.0).epsilon(0.01));
  CHECK(largest(plain.value("inner.bias")) > 0.1);
  told.start_of(xl, "inner.weight");
  for (const char* weight : {"inner.weight", "outer.weight"}) {
    CHECK(moments(told.value(weight)).deviation == Approx(0.02).epsilon(5 / std::sqrt(2 * 6400.0)));
    CHECK(moments(told.value(weight)).mean == Approx(0).margin(5 * 0.02 / 80));
  }
  CHECK(told.value("inner.bias").data == std::vector<double>(100, 0));
  CHECK(told.value("outer.bias").data == std::vector<double>(64, 0));
}

TEST_CASE("linear: a start with a bound, with and without bias") {
  StartBench bench;
  Linear map(30, 40, {init::uniform(0.1), init::constant(2)}), without(30, 40, {init::uniform(0.1), {}}, false);
  const double bound = largest(bench.start_of(map, "weight"));
  CHECK(bound <= 0.1);
  CHECK(bound > 0.099);
  CHECK(bench.value("bias").data == std::vector<double>(40, 2));
  StartBench other;
  other.start_of(without, "weight");
  CHECK(other.store.find("bias") == nullptr);
}

}  // namespace
}  // namespace engram::harness::start_values_test

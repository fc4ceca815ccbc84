/// T4 of [all-attention 12] through the real layer: outputs, loss and gradients that the released models' code
/// gives for fixed numbers; and T22, slots alone are a position-free function.

#include <cmath>

#include "tests/harness/catch.hpp"
#include "tests/nn/placed_model.hpp"

namespace engram::harness::layer_test {
namespace {

using reference::fill;

struct GoldenLayer : Bench {
  ParameterStore store;
  AllAttentionLayer layer;

  static AllAttentionOptions options() {
    AllAttentionOptions options;
    options.vocabulary = 1;
    options.layers = 1;
    options.width = 4;
    options.heads = 2;
    options.slots = 3;
    options.max_span = 6;
    options.ramp = 2;
    return options;
  }

  explicit GoldenLayer(DType dtype) : layer(options()) {
    collect(layer, store);
    store.place(*backend, dtype, 1);
    set("attention.query", fill(1, {4, 4}));
    set("attention.key", fill(2, {4, 4}));
    set("attention.value", fill(3, {4, 4}));
    set("attention.output", fill(4, {4, 4}));
    set("attention.persistent_keys", fill(6, {2, 3, 2}));
    set("attention.persistent_values", fill(7, {2, 3, 2}));
    set("attention.span", reference::array({2}, {0.25, 0.6}));
    layer.attention().span().refresh(*backend);
  }
  void set(const char* name, const reference::Array64& values) { write(store.find(name)->value(), values); }
  double gradient_norm(const char* name) { return reference::norm(read(store.find(name)->gradient())); }
};

TEST_CASE("T4: the golden layer") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const double tolerance = dtype == DType::f64 ? 1e-7 : 1e-5;
    CAPTURE(name_of(dtype));
    GoldenLayer golden(dtype);
    HiddenCache cache({*golden.backend, golden.heap, 1, dtype}, 4, Pad::attend_zero,
                      golden.layer.attention().span().extent());
    cache.restore(6, 6);
    golden.write(cache.states(), fill(8, {1, 6, 4}));

    Tape tape(golden.step);
    const Variable h = tape.leaf(golden.tensor(fill(9, {1, 3, 4}), dtype));
    const Variable u = tape.leaf(golden.tensor(fill(5, {6, 2}), dtype));
    const Variable out = golden.layer.forward(h, cache, {.keys = u, .values = {}});
    const reference::Array64 expected =
        reference::array({1, 3, 4}, {1.12927274, 0.84037059, -1.18251255, -0.78713078, -1.54044092, -0.14127734,
                                     0.53049448, 1.15122378, 1.04353916, 0.92587299, -0.74587321, -1.22353894});
    const reference::Array64 got = golden.read(out.value());
    CHECK(largest_difference(got, expected) < tolerance);

    reference::Array64 cotangent = reference::zeros({1, 3, 4});
    double loss = 0;
    for (std::size_t k = 0; k < 12; ++k) {
      cotangent.data[k] = std::cos(0.3 * double(k));
      loss += got.data[k] * cotangent.data[k];
    }
    CHECK(loss == Approx(-0.46297957).margin(tolerance));
    tape.backward(out, golden.tensor(cotangent, dtype));

    CHECK(golden.gradient_norm("attention.query") == Approx(.08770193).margin(tolerance));
    CHECK(golden.gradient_norm("attention.key") == Approx(.01388407).margin(tolerance));
    CHECK(golden.gradient_norm("attention.value") == Approx(.10199965).margin(tolerance));
    CHECK(golden.gradient_norm("attention.output") == Approx(.21497729).margin(tolerance));
    CHECK(golden.gradient_norm("attention.persistent_keys") == Approx(.08260507).margin(tolerance));
    CHECK(golden.gradient_norm("attention.persistent_values") == Approx(.32968518).margin(tolerance));
    CHECK(reference::norm(golden.read(tape.gradient(u))) == Approx(.00770101).margin(tolerance));
    CHECK(reference::norm(golden.read(tape.gradient(h))) == Approx(.87725288).margin(tolerance));
    const reference::Array64 span = golden.read(golden.store.find("attention.span")->gradient());
    CHECK(span.data[0] == Approx(0.05839435).margin(tolerance));
    CHECK(span.data[1] == Approx(0.04049675).margin(tolerance));

    // The cache now ends with the block.
    const reference::Array64 kept = golden.read(cache.states());
    const reference::Array64 block = golden.read(h.value());
    REQUIRE(kept.axis(1) == 6);
    for (std::int64_t m = 0; m < 3; ++m)
      for (std::int64_t i = 0; i < 4; ++i) CHECK(kept.at(0, 3 + m, i) == block.at(0, m, i));
  }
}

TEST_CASE("T22: persistent slots alone do not know where they are") {
  Bench bench;
  reference::RandomArrays random(4);
  Tape tape(bench.step, Tape::Mode::inference);
  const reference::Array64 query = random.array({1, 1, 6});
  reference::Array64 queries = reference::zeros({2, 5, 6});
  for (std::size_t i = 0; i < queries.data.size(); ++i) queries.data[i] = query.data[i % 6];
  AttentionOptions options;
  options.heads = 2;
  options.max_distance = 0;
  options.slot_value_scale = 2;
  const reference::Array64 out =
      bench.read(attention({{.content_query = tape.constant(bench.tensor(queries)),
                             .slot_keys = tape.constant(bench.tensor(random.array({2, 4, 3}))),
                             .slot_values = tape.constant(bench.tensor(random.array({2, 4, 3})))}},
                           options)
                     .out.value());
  for (std::size_t i = 0; i < out.data.size(); ++i) CHECK(out.data[i] == Approx(out.data[i % 6]).epsilon(1e-12));
}

}  // namespace
}  // namespace engram::harness::layer_test

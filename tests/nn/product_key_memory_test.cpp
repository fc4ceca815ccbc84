/// The product-key memory layer against its plain definition: [product-key 10].

#include "nn/layers/product_key_memory.hpp"

#include <cmath>
#include <map>
#include <set>

#include "nn/visitor.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_model.hpp"
#include "tests/reference/basic_ops.hpp"
#include "tests/reference/product_key_memory.hpp"

namespace engram::harness::product_key_memory_test {
namespace {

using reference::Array64;

constexpr std::int64_t kWidth = 6;

ProductKeyOptions small() {
  return {.layers = {1}, .subkeys = 5, .heads = 2, .selected = 3, .query_width = 4, .value_width = 0};
}

struct PlacedMemory : Bench {
  ParameterStore store;
  ProductKeyMemory memory;

  explicit PlacedMemory(const ProductKeyOptions& options, std::int64_t width = kWidth, DType dtype = DType::f64)
      : memory(options, width) {
    collect(memory, store);
    store.place(*backend, dtype, 5);
  }
  Parameter& parameter(const std::string& name) {
    Parameter* const found = store.find(name);
    if (found == nullptr) throw Error("test: no parameter " + name);
    return *found;
  }
  Array64 value(const std::string& name) { return read(parameter(name).value()); }
  void set(const std::string& name, const Array64& values) { write(parameter(name).value(), values); }
  /// The gradient of the values' rows, as a tensor of the table's size.
  Array64 values_gradient() {
    Parameter& table = parameter("values.rows");
    Array64 sum = reference::zeros({table.shape()[0], table.shape()[1]});
    for (const RowGradient::Part& part : table.row_gradient().parts) {
      const Array64 ids = read(part.uses.ids), weights = read(part.uses.weights), sources = read(part.uses.sources);
      for (std::size_t use = 0; use < ids.data.size(); ++use)
        for (std::int64_t c = 0; c < table.shape()[1]; ++c)
          sum.data[static_cast<std::size_t>(static_cast<std::int64_t>(ids.data[use]) * table.shape()[1] + c)] +=
              weights.data[use] * sources.data[use / static_cast<std::size_t>(part.uses.per_source()) *
                                                   static_cast<std::size_t>(table.shape()[1]) +
                                               static_cast<std::size_t>(c)];
    }
    return sum;
  }
  Array64 gradient(const std::string& name) {
    return name == "values.rows" ? values_gradient() : read(parameter(name).gradient());
  }
  /// sum(cotangent * memory(x)), and its gradients.
  double loss(const Array64& x, const Array64& cotangent, bool backward = false) {
    store.zero_gradients(step);
    step.begin({});
    Tape tape(step);
    const Variable y = memory.forward(tape.constant(tensor(x)));
    const Array64 out = read(y.value());
    if (backward) tape.backward(y, tensor(cotangent));
    double sum = 0;
    for (std::size_t i = 0; i < out.data.size(); ++i) sum += out.data[i] * cotangent.data[i];
    return sum;
  }
};

Array64 linear_queries(PlacedMemory& placed, const Array64& x) {
  return reference::linear(x, placed.value("query.layers.0.weight"), placed.value("query.layers.0.bias"));
}

TEST_CASE("product-key memory: forward equals the definition, with batch norm on queries") {
  for (const std::int64_t factors : {2, 3}) {
    ProductKeyOptions options = small();
    options.factors = factors;
    options.query_width = 2 * factors;
    PlacedMemory placed(options);
    reference::RandomArrays random(11);
    const Array64 x = random.array({7, kWidth});
    Tape tape(placed.step);
    MemoryTrace trace;
    const Variable y = placed.memory.forward(tape.constant(placed.tensor(x)), {}, &trace);
    const Array64 queries = reference::batch_norm_of_rows(linear_queries(placed, x), placed.value("query.norm.gain"),
                                                          placed.value("query.norm.bias"), 1e-5);
    const reference::MemoryRead want =
        reference::product_key_memory(queries, placed.value("keys"), placed.value("values.rows"), options.selected);
    CHECK(reference::distance_between(placed.read(y.value()), want.y) < 1e-12 * reference::norm(want.y));
    CHECK(placed.read(trace.ids).data == want.ids.data);
    CHECK(reference::distance_between(placed.read(trace.weights), want.weights) < 1e-12);
    CHECK(reference::distance_between(placed.read(trace.scores), want.scores) < 1e-12);
  }
}

TEST_CASE("product-key memory: every gradient equals central differences (test 6)") {
  struct Variant {
    const char* name;
    ProductKeyOptions options;
  };
  std::vector<Variant> variants{{"plain", small()}};
  const auto add = [&](const char* name, auto change) {
    variants.push_back({name, small()});
    change(variants.back().options);
  };
  add("flat keys", [](ProductKeyOptions& o) { o.keys = KeyKind::flat; });
  add("three sets", [](ProductKeyOptions& o) { o.factors = 3, o.query_width = 6, o.subkeys = 3; });
  add("mlp", [](ProductKeyOptions& o) { o.query_network = QueryNetworkKind::mlp, o.query_hidden = {5}; });
  add("mlp by head", [](ProductKeyOptions& o) { o.query_network = QueryNetworkKind::heads_mlp, o.query_hidden = {5}; });
  add("layer norm", [](ProductKeyOptions& o) { o.query_norm = QueryNorm::layer; });
  add("rms norm", [](ProductKeyOptions& o) { o.query_norm = QueryNorm::rms; });
  add("no norm", [](ProductKeyOptions& o) { o.query_norm = QueryNorm::none; });
  add("identity", [](ProductKeyOptions& o) {
    o.query_network = QueryNetworkKind::identity, o.query_width = kWidth, o.query_norm = QueryNorm::layer;
  });
  add("queries of unit length", [](ProductKeyOptions& o) { o.query_norm = QueryNorm::l2; });
  add("unit length", [](ProductKeyOptions& o) { o.query_norm = QueryNorm::l2, o.unit_keys = true; });
  add("swish", [](ProductKeyOptions& o) { o.gate = MemoryGate::swish, o.value_width = 4; });
  add("scalar gate", [](ProductKeyOptions& o) { o.gate = MemoryGate::scalar; });
  add("projection", [](ProductKeyOptions& o) { o.projection = true, o.value_width = 3; });
  for (const auto& [name, options] : variants) {
    options.check(kWidth, 1);
    PlacedMemory placed(options);
    reference::RandomArrays random(23);
    const Array64 x = random.array({6, kWidth}), cotangent = random.array({6, kWidth});
    placed.loss(x, cotangent, true);
    std::map<std::string, Array64> gradients;
    for (const auto& [parameter, unused] : placed.store.parameters())
      if (unused->gradient_kind() != Gradient::none) gradients[parameter] = placed.gradient(parameter);
    for (const auto& entry : gradients) {
      const std::string& parameter = entry.first;  // clang 14 captures no structured bindings
      CAPTURE(name, parameter);
      Array64 value = placed.value(parameter);
      const Array64 numeric = reference::central_differences(
          value,
          [&] {
            placed.set(parameter, value);
            return placed.loss(x, cotangent);
          },
          1e-6);
      placed.set(parameter, value);
      const bool no_effect = parameter.find("bias") != std::string::npos && options.query_norm == QueryNorm::batch &&
                             parameter.find("norm") == std::string::npos;
      if (!no_effect) CHECK(reference::norm(numeric) > 1e-5);
      CHECK(reference::distance_between(entry.second, numeric) < 1e-6 * std::max(0.05, reference::norm(numeric)));
    }
  }
}

TEST_CASE("product-key memory: flat keys that are the pairs of sub-keys read the same (test 5)") {
  ProductKeyOptions options = small();
  options.query_norm = QueryNorm::none;
  PlacedMemory product(options);
  options.keys = KeyKind::flat;
  PlacedMemory flat(options);
  for (const char* name : {"query.layers.0.weight", "query.layers.0.bias", "values.rows"})
    flat.set(name, product.value(name));
  const Array64 keys = product.value("keys");
  Array64 pairs = flat.value("keys");
  const std::int64_t heads = 2, n = 5, half = 2;
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t c = 0; c < 2 * half; ++c)
          pairs.data[static_cast<std::size_t>(((h * n + i) * n + j) * 2 * half + c)] =
              keys.data[static_cast<std::size_t>(c < half ? ((h * 2) * n + i) * half + c
                                                          : ((h * 2 + 1) * n + j) * half + c - half)];
  flat.set("keys", pairs);
  reference::RandomArrays random(31);
  const Array64 x = random.array({9, kWidth});
  MemoryTrace by_pairs, by_parts;
  Tape first(product.step), second(flat.step);
  const Array64 a = product.read(product.memory.forward(first.constant(product.tensor(x)), {}, &by_parts).value());
  const Array64 b = flat.read(flat.memory.forward(second.constant(flat.tensor(x)), {}, &by_pairs).value());
  CHECK(product.read(by_parts.ids).data == flat.read(by_pairs.ids).data);
  CHECK(reference::distance_between(a, b) < 1e-12 * reference::norm(a));
}

TEST_CASE("product-key memory: what changes nothing (test 7)") {
  ProductKeyOptions options = small();
  options.query_norm = QueryNorm::none;
  reference::RandomArrays random(41);
  const Array64 x = random.array({6, kWidth}), cotangent = random.array({6, kWidth});
  SECTION("one vector added to all keys of a set adds one number to all scores") {
    PlacedMemory placed(options);
    const double before = placed.loss(x, cotangent);
    Array64 keys = placed.value("keys");
    for (std::int64_t i = 0; i < 5; ++i)
      for (std::int64_t c = 0; c < 2; ++c)
        keys.data[static_cast<std::size_t>(i * 2 + c)] += c == 0 ? 0.7 : -1.3;  // head 0, first set
    placed.set("keys", keys);
    CHECK(placed.loss(x, cotangent) == Approx(before).epsilon(1e-10));
  }
  SECTION("with one slot a head the weights are 1: nothing reaches keys and queries") {
    options.selected = 1;
    PlacedMemory placed(options);
    placed.loss(x, cotangent, true);
    CHECK(reference::norm(placed.gradient("keys")) == 0);
    CHECK(reference::norm(placed.gradient("query.layers.0.weight")) == 0);
    CHECK(reference::norm(placed.gradient("values.rows")) > 0);
  }
}

TEST_CASE("product-key memory: start values (test 15)", "[night]") {
  ProductKeyOptions options{.layers = {1, 2}, .subkeys = 512, .heads = 4, .selected = 32, .query_width = 512};
  constexpr std::int64_t kModel = 64;
  struct Pair final : Module {
    MemoryMaker maker;
    std::unique_ptr<ProductKeyMemory> first, second;
    explicit Pair(const ProductKeyOptions& options)
        : maker(options, kModel, 2), first(maker.make(0)), second(maker.make(1)) {}
    void visit(Visitor& visit) override {
      visit("first", *first);
      visit("second", *second);
    }
  };
  for (const bool same : {false, true}) {
    options.same_keys = same;
    options.shared_values = true;
    Bench bench;
    Pair pair(options);
    ParameterStore store;
    collect(pair, store);
    store.place(*bench.backend, DType::f32, 5);
    CHECK(store.tables().size() == 1);  // both read one table
    const Array64 first = bench.read(store.find("first.keys")->value()),
                  second = bench.read(store.find("second.keys")->value());
    CHECK((first.data == second.data) == same);
    const double bound = 1 / std::sqrt(256.0);
    double largest = 0;
    for (const double key : first.data) largest = std::max(largest, std::abs(key));
    CHECK(largest <= bound);
    CHECK(largest > 0.999 * bound);
    if (same) continue;
    const Array64 values = bench.read(store.find("first.values.rows")->value());
    double square = 0;
    for (const double value : values.data) square += value * value;
    CHECK(std::sqrt(square / static_cast<double>(values.data.size())) == Approx(1 / std::sqrt(64.0)).epsilon(0.01));
    // Weights nearly uniform over 32 of 512 x 512 slots: the output starts small.
    reference::RandomArrays random(3);
    Tape tape(bench.step);
    MemoryTrace trace;
    const Array64 x = random.array({256, kModel});
    const Array64 y = bench.read(pair.first->forward(tape.constant(bench.tensor(x, DType::f32)), {}, &trace).value());
    double weights = 0, output = 0;
    const Array64 used = bench.read(trace.weights);
    for (const double weight : used.data) weights += weight * weight;
    for (const double number : y.data) output += number * number;
    const double mean_sum = weights / (256.0 * 4);  // of a head's weights
    CHECK(mean_sum == Approx(0.032).epsilon(0.1));
    CHECK(std::sqrt(output / static_cast<double>(y.data.size())) == Approx(std::sqrt(4 * mean_sum / 64)).epsilon(0.05));
  }
}

TEST_CASE("product-key memory: inference uses the running statistics and changes none") {
  PlacedMemory placed(small());
  reference::RandomArrays random(51);
  const Array64 x = random.array({6, kWidth});
  placed.loss(x, random.array({6, kWidth}));
  const Array64 mean = placed.value("query.norm.running_mean");
  CHECK(reference::norm(mean) > 0);
  const auto read = [&](const Array64& rows) {
    placed.step.begin({});
    Tape tape(placed.step, Tape::Mode::inference);
    return placed.read(placed.memory.forward(tape.constant(placed.tensor(rows))).value());
  };
  const Array64 all = read(x);
  CHECK(placed.value("query.norm.running_mean").data == mean.data);
  // Rows do not see each other.
  Array64 one = reference::zeros({1, kWidth});
  std::copy_n(x.data.begin() + 2 * kWidth, kWidth, one.data.begin());
  const Array64 alone = read(one);
  for (std::size_t c = 0; c < kWidth; ++c) CHECK(alone.data[c] == Approx(all.data[2 * kWidth + c]).epsilon(1e-12));
}

}  // namespace
}  // namespace engram::harness::product_key_memory_test

/// Queries of a product-key memory against plain definitions: [product-key 1.2, 1.3, 9].

#include "nn/layers/query_network.hpp"

#include <cmath>

#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"
#include "tests/nn/placed_model.hpp"
#include "tests/reference/basic_ops.hpp"
#include "tests/reference/normalisations.hpp"

namespace engram::harness::query_network_test {
namespace {

using reference::Array64;

constexpr std::int64_t kRows = 7;

struct QueryBench : Bench {
  QueryNetworkOptions options;
  ParameterStore store;  // before the network, whose memory it owns
  QueryNetwork network;

  explicit QueryBench(const QueryNetworkOptions& of, bool random_vectors = true) : options(of), network(of) {
    collect(network, store);
    store.place(*backend, DType::f64, 5);
    reference::RandomArrays random(8);
    for (const auto& [name, parameter] : store.parameters())
      if (random_vectors && name.find("running") == std::string::npos && parameter->shape().rank() == 1)
        write(parameter->value(), random.array(PlacedModel::shape_of(*parameter)));
  }
  bool has(const std::string& name) const { return store.find(name) != nullptr; }
  Array64 value(const std::string& name) {
    CAPTURE(name);
    REQUIRE(has(name));
    return read(store.find(name)->value());
  }
  Array64 queries(const Array64& x, Tape::Mode mode = Tape::Mode::training, const RowMask& mask = {}) {
    Tape tape(step, mode);
    return read(network.forward(tape.constant(tensor(x)), mask).value());
  }
  RowMask mask(const Tokens& included) {
    RowMask made{ids(included, {static_cast<std::int64_t>(included.size())}), 0};
    for (const std::int64_t one : included) made.count += one;
    return made;
  }

  // The definitions, in training; running statistics are in the store.
  Array64 batch_normed(const std::string& name, const Array64& x, const Array64& rows) {
    const Array64 none = reference::zeros({x.axis(-1)});
    return reference::batch_norm_training(x, value(name + "gain"), value(name + "bias"), none, none, rows).y;
  }
  Array64 map(const std::string& name, Array64 y, const Array64& rows) {
    for (std::size_t layer = 0; layer <= options.hidden.size(); ++layer) {
      const std::string of = text(name, "layers.", layer, ".");
      y = reference::linear(y, value(of + "weight"), value(of + "bias"));
      if (layer == options.hidden.size()) break;
      if (options.norm == QueryNorm::batch) y = batch_normed(text(name, "norms.", layer, "."), y, rows);
      y = reference::relu(y);
    }
    return y;
  }
  Array64 normed(const Array64& raw, const Array64& rows) {
    if (options.norm == QueryNorm::none) return raw;
    if (options.norm == QueryNorm::batch) return batch_normed("norm.", raw, rows);
    const std::int64_t width = options.query_width / options.factors;
    Array64 each{{raw.count() / width, width}, raw.data};
    if (options.norm == QueryNorm::layer)
      each = reference::layer_norm(each, {}, value("norm.gain"), value("norm.bias")).normalised;
    if (options.norm == QueryNorm::rms) each = reference::rms_norm(each, value("norm.gain"));
    if (options.norm == QueryNorm::l2) each = reference::l2_norm(each);
    return {raw.shape, each.data};
  }
  Array64 defined(const Array64& x, const Array64& rows = {}) {
    std::vector<Array64> parts;
    if (options.kind == QueryNetworkKind::heads_mlp)
      for (std::int64_t part = 0; part < options.heads * options.factors; ++part)
        parts.push_back(map(text("maps.", part, "."), x, rows));
    else if (options.kind == QueryNetworkKind::identity)
      parts.assign(static_cast<std::size_t>(options.heads), x);
    else
      parts.push_back(map("", x, rows));
    return normed(reference::concat(parts, x.rank() - 1), rows);
  }
};

std::vector<QueryNetworkOptions> all_kinds(QueryNorm norm) {
  return {{.width = 6, .heads = 3, .query_width = 4, .norm = norm},
          {.width = 6, .heads = 2, .factors = 1, .query_width = 5, .norm = norm},
          {.width = 6, .heads = 1, .factors = 3, .query_width = 6, .norm = norm},
          {.width = 6, .heads = 3, .query_width = 4, .kind = QueryNetworkKind::mlp, .hidden = {5}, .norm = norm},
          {.width = 6, .heads = 2, .query_width = 4, .kind = QueryNetworkKind::mlp, .hidden = {5, 7}, .norm = norm},
          {.width = 6, .heads = 2, .query_width = 4, .kind = QueryNetworkKind::heads_mlp, .hidden = {5}, .norm = norm},
          {.width = 4, .heads = 3, .query_width = 4, .kind = QueryNetworkKind::identity, .norm = norm},
          {.width = 4, .heads = 1, .query_width = 4, .kind = QueryNetworkKind::identity, .norm = norm}};
}
constexpr QueryNorm kNorms[] = {QueryNorm::none, QueryNorm::batch, QueryNorm::layer, QueryNorm::rms, QueryNorm::l2};

TEST_CASE("query network: every kind and norm against its definition") {
  reference::RandomArrays random(2);
  for (const QueryNorm norm : kNorms)
    for (const QueryNetworkOptions& options : all_kinds(norm)) {
      CAPTURE(name_of(norm), name_of(options.kind), options.heads, options.hidden);
      QueryBench bench(options);
      const Array64 x = random.array({kRows, options.width});
      const Array64 queries = bench.queries(x);
      CHECK(queries.shape == std::vector<std::int64_t>{kRows, options.heads * options.query_width});
      CHECK(largest_difference(queries, bench.defined(x)) < 1e-12);
      // Leading axes do not matter.
      CHECK(bench.queries({{1, kRows, options.width}, x.data}).data == queries.data);

      const Tokens rows{1, 1, 0, 1, 0, 1, 1};
      Array64 included = reference::zeros({kRows});
      for (std::size_t r = 0; r < rows.size(); ++r) included.data[r] = static_cast<double>(rows[r]);
      const Array64 masked = bench.queries(x, Tape::Mode::training, bench.mask(rows));
      CHECK(largest_difference(masked, bench.defined(x, included)) < 1e-12);
      CHECK((masked.data == queries.data) == (norm != QueryNorm::batch));
    }
}

TEST_CASE("query network: gradients of everything against central differences") {
  reference::RandomArrays random(12);
  for (const QueryNorm norm : {QueryNorm::batch, QueryNorm::layer})
    for (const QueryNetworkKind kind : {QueryNetworkKind::linear, QueryNetworkKind::heads_mlp}) {
      CAPTURE(name_of(norm), name_of(kind));
      const bool deep = kind == QueryNetworkKind::heads_mlp;
      QueryBench bench({.width = 3,
                        .heads = 2,
                        .query_width = 4,
                        .kind = kind,
                        .hidden = deep ? std::vector<std::int64_t>{3} : std::vector<std::int64_t>{},
                        .norm = norm});
      Array64 x = random.array({5, 3});
      const Array64 cotangent = random.array({5, 8});
      const auto objective = [&] {
        const Array64 queries = bench.queries(x);
        double sum = 0;
        for (std::size_t i = 0; i < queries.data.size(); ++i) sum += queries.data[i] * cotangent.data[i];
        return sum;
      };
      Tape tape(bench.step);
      const Variable leaf = tape.leaf(bench.tensor(x));
      tape.backward(bench.network.forward(leaf), bench.tensor(cotangent));
      const Array64 dx = bench.read(tape.gradient(leaf));
      CHECK(largest_difference(dx, reference::central_differences(x, objective)) < 1e-6);
      for (const auto& [name, parameter] : bench.store.parameters()) {
        if (parameter->gradient_kind() != Gradient::dense) continue;
        CAPTURE(name);
        Array64 value = bench.read(parameter->value());
        const Array64 numeric = reference::central_differences(value, [&, changed = parameter] {
          bench.write(changed->value(), value);
          return objective();
        });
        bench.write(parameter->value(), value);
        CHECK(largest_difference(bench.read(parameter->gradient()), numeric) < 1e-6);
      }
    }
}

TEST_CASE("query network: in inference a batch norm uses what it saw") {
  reference::RandomArrays random(6);
  QueryBench bench({.width = 3, .heads = 2, .query_width = 4});
  CHECK(bench.options.norm == QueryNorm::batch);
  for (int step = 0; step < 3; ++step) bench.queries(random.array({9, 3}));
  const Array64 x = random.array({1, 3});  // one row is enough
  const Array64 wanted =
      reference::batch_norm_inference(bench.map("", x, {}), bench.value("norm.gain"), bench.value("norm.bias"),
                                      bench.value("norm.running_mean"), bench.value("norm.running_variance"), {});
  CHECK(largest_difference(bench.queries(x, Tape::Mode::inference), wanted) < 1e-12);
  CHECK_THROWS_WITH(bench.queries(x), ContainsSubstring("batch norm needs more than one row"));
}

TEST_CASE("query network: names, counts and start values") {
  QueryBench linear({.width = 400, .heads = 2, .query_width = 6}, false);
  CHECK(linear.store.count() == 12 * 400 + 12 + 2 * 12);  // the running statistics do not count
  for (const char* name : {"layers.0.weight", "layers.0.bias"}) {
    double largest = 0;
    for (const double number : linear.value(name).data) largest = std::max(largest, std::abs(number));
    CHECK(largest <= 1 / std::sqrt(400.0));
    CHECK(largest > 0.5 / std::sqrt(400.0));
  }
  CHECK(linear.value("norm.gain").data == std::vector<double>(12, 1));
  CHECK(linear.value("norm.bias").data == std::vector<double>(12, 0));

  const auto hidden_norms = [](QueryNorm norm) {
    QueryBench bench(
        {.width = 4, .heads = 2, .query_width = 6, .kind = QueryNetworkKind::heads_mlp, .hidden = {3}, .norm = norm});
    CHECK(bench.value("maps.3.layers.0.weight").shape == std::vector<std::int64_t>{3, 4});
    CHECK(bench.value("maps.3.layers.1.weight").shape == std::vector<std::int64_t>{3, 3});
    CHECK_FALSE(bench.has("maps.4.layers.0.weight"));
    return bench.has("maps.0.norms.0.running_mean");
  };
  CHECK(hidden_norms(QueryNorm::batch));
  for (const QueryNorm norm : {QueryNorm::none, QueryNorm::layer, QueryNorm::rms, QueryNorm::l2})
    CHECK_FALSE(hidden_norms(norm));

  // One gain for all sub-queries.
  QueryBench layer({.width = 4, .heads = 3, .query_width = 6, .norm = QueryNorm::layer});
  CHECK(layer.value("norm.gain").shape == std::vector<std::int64_t>{3});
  CHECK(layer.value("norm.bias").shape == std::vector<std::int64_t>{3});
  CHECK(QueryBench({.width = 4, .query_width = 4, .kind = QueryNetworkKind::identity, .norm = QueryNorm::l2})
            .store.parameters()
            .empty());
}

TEST_CASE("query network: what it refuses") {
  const auto refusal = [](QueryNetworkOptions options) { return message_of<UsageError>([&] { options.check(); }); };
  const QueryNetworkOptions good{.width = 4, .heads = 2, .query_width = 6};
  CHECK_NOTHROW(good.check());
  const auto changed = [&good](auto change) {
    QueryNetworkOptions options = good;
    change(options);
    return options;
  };
  using O = QueryNetworkOptions;
  CHECK(refusal(changed([](O& o) { o.width = 0; })) == "query network: width must be from 1 to 16777216, got 0");
  CHECK(refusal(changed([](O& o) { o.heads = 0; })) == "query network: heads must be from 1 to 64, got 0");
  CHECK(refusal(changed([](O& o) { o.factors = 0; })) == "query network: factors must be from 1 to 3, got 0");
  CHECK(refusal(changed([](O& o) { o.query_width = 1; })) ==
        "query network: query_width must be from 2 to 16777216, got 1");
  CHECK(refusal(changed([](O& o) { o.query_width = 7; })) ==
        "query network: query_width must be a multiple of factors 2, got 7");
  CHECK(refusal(changed([](O& o) { o.hidden = {3}; })) ==
        "query network: number of hidden layers must be 0 for kind linear, got 1");
  CHECK(refusal(changed([](O& o) { o.kind = QueryNetworkKind::mlp; })) ==
        "query network: number of hidden layers must be at least 1 for kind mlp, got 0");
  CHECK(refusal(changed([](O& o) {
          o.kind = QueryNetworkKind::heads_mlp;
          o.hidden = {3, 0};
        })) == "query network: the width of a hidden layer must be from 1 to 16777216, got 0");
  CHECK_THAT(refusal(changed([](O& o) { o.kind = QueryNetworkKind::identity; })),
             StartsWith("query network: query_width must be the width 4 for kind identity, got 6\n  "));
  CHECK_THROWS_AS(QueryNetwork(changed([](O& o) { o.heads = -1; })), UsageError);
  CHECK_THROWS_AS(QueryNormalisation(QueryNorm::rms, 0, 2, 4), UsageError);
  CHECK_THROWS_AS(QueryNormalisation(QueryNorm::rms, 1, 2, 5), UsageError);
}

}  // namespace
}  // namespace engram::harness::query_network_test

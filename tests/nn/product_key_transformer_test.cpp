/// The Transformer of the paper on product-key memory against its executable definition; its parameters
/// ([product-key 5.2, 5.3]) and what is refused.

#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "autograd/tape_listing.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_host.hpp"

namespace engram::harness::product_key_transformer_test {
namespace {

using Ids = PlacedHost::Ids;

Ids random_tokens(std::int64_t count, std::int64_t vocabulary, std::uint64_t seed) {
  reference::RandomArrays random(seed);
  Ids ids;
  for (std::int64_t i = 0; i < count; ++i) ids.push_back(random.below(vocabulary));
  return ids;
}

double farthest(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  REQUIRE_FALSE(a.empty());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (const double difference = std::abs(a[i] - b[i]); !(difference <= largest)) largest = difference;
  return largest;
}

std::int64_t count(const ProductKeyTransformerOptions& options) {
  ProductKeyTransformer model(options);
  ParameterStore store;
  collect(model, store);
  return store.count();
}

TEST_CASE("product-key host: every window equals the definition, whatever came before", "[product-key]") {
  for (const HostVariant& variant : host_variants()) {
    CAPTURE(variant.name);
    PlacedHost placed(variant.options);
    placed.spread(11);
    const reference::HostTransformer defined = placed.definition();
    for (const std::int64_t length : {3, 1, 9, 2}) {
      const Ids tokens = random_tokens(2 * length, 7, 70 + std::uint64_t(length));
      std::vector<double> expected;
      for (std::int64_t stream = 0; stream < 2; ++stream) {
        const std::vector<double> own =
            reference::host_log_probabilities(
                defined, {tokens.begin() + stream * length, tokens.begin() + (stream + 1) * length})
                .data;
        expected.insert(expected.end(), own.begin(), own.end());
      }
      CHECK(farthest(expected, placed.run(tokens, 2).data) < 1e-11);
    }
  }
}

TEST_CASE("product-key host: gradients of all parameters equal central differences", "[product-key][night]") {
  for (const HostVariant& variant : host_variants()) {
    CAPTURE(variant.name);
    PlacedHost placed(variant.options);
    placed.spread(3);
    const Ids tokens = random_tokens(2 * 4, 7, 22), targets = random_tokens(2 * 4, 7, 23);
    placed.store.zero_gradients(placed.step);
    placed.train(tokens, targets, 2);
    std::map<std::string, reference::Array64> analytic;
    for (const auto& [name, parameter] : placed.store.parameters()) analytic[name] = placed.gradient(name);
    placed.differentiates = false;
    for (const auto& [name, gradient] : analytic) {
      CAPTURE(name);
      reference::Array64 value = placed.value(name);
      const reference::Array64 numeric = reference::central_differences(
          value,
          [&, &changed = name] {
            placed.set(changed, value.data);
            return placed.train(tokens, targets, 2);
          },
          1e-5);
      placed.set(name, value.data);
      // A constant that is added to all scores of a query changes nothing.
      if (name.ends_with("key.bias")) {
        CHECK(reference::norm(gradient) < 1e-12);
        continue;
      }
      CHECK(reference::norm(numeric) > 1e-5);
      CHECK(reference::distance_between(gradient, numeric) < 1e-7 * std::max(0.05, reference::norm(numeric)));
    }
  }
}

TEST_CASE("product-key host: losses and gradients in f32 are those in f64, on every device", "[product-key]") {
  const Ids tokens = random_tokens(2 * 5, 7, 22), targets = random_tokens(2 * 5, 7, 23);
  for (const auto& device : available_backends())
    for (const HostVariant& variant : host_variants()) {
      CAPTURE(variant.name, name_of(device->device().kind));
      PlacedHost exact(variant.options), placed(variant.options, DType::f32, *device);
      for (PlacedHost* const one : {&exact, &placed}) {
        one->spread(3);
        one->store.zero_gradients(one->step);
      }
      CHECK(placed.train(tokens, targets, 2) == Approx(exact.train(tokens, targets, 2)).margin(2e-5));
      for (const auto& [name, parameter] : exact.store.parameters()) {
        CAPTURE(name);
        CHECK(farthest(exact.gradient(name).data, placed.gradient(name).data) < 2e-5);
      }
    }
}

TEST_CASE("product-key host: a position sees none behind it, and positions begin anew in every block",
          "[product-key]") {
  PlacedHost placed(small_host());
  placed.spread(4);
  const Ids tokens{3, 1, 4, 1, 5};
  const std::vector<double> all = placed.run(tokens).data;
  for (std::size_t changed = 1; changed < tokens.size(); ++changed) {
    Ids other = tokens;
    other[changed] = (other[changed] + 1) % 7;
    const std::vector<double> now = placed.run(other).data;
    const auto border = static_cast<std::ptrdiff_t>(changed * 7);
    CHECK(std::vector<double>(now.begin(), now.begin() + border) ==
          std::vector<double>(all.begin(), all.begin() + border));
    CHECK(farthest({now.begin() + border, now.end()}, {all.begin() + border, all.end()}) > 1e-6);
  }
  // The same block again, after others, is the same: nothing is remembered, and it has the first positions.
  placed.run({6, 6, 6, 6, 6, 6, 6, 6});
  CHECK(placed.run(tokens).data == all);
  // Without the table of positions the order of what came before would not matter.
  const Ids swapped{1, 3, 4, 1, 5};
  const auto last = [](const std::vector<double>& rows) { return std::vector<double>(rows.end() - 7, rows.end()); };
  CHECK(farthest(last(placed.run(swapped).data), last(all)) > 1e-6);
}

TEST_CASE("product-key host: one table serves input and output", "[product-key]") {
  PlacedHost placed(small_host());
  placed.spread(4);
  CHECK(placed.store.find("output.table") == nullptr);
  // The row of a word that is not read changes its logit alone.
  const Ids tokens{3, 1, 4};
  const auto ratios = [&](std::int64_t word) {
    const reference::Array64 all = placed.run(tokens);
    return all.at(0, 2, word) - all.at(0, 2, 2);
  };
  const double six = ratios(6), five = ratios(5);
  std::vector<double> table = placed.value("embedding.table").data;
  table[6 * 6 + 1] += 0.5;
  placed.set("embedding.table", table);
  CHECK(std::abs(ratios(6) - six) > 1e-3);
  CHECK(ratios(5) == Approx(five).epsilon(1e-12));
}

TEST_CASE("product-key host: parameters of the worked table, without memories", "[product-key][T14]") {
  struct Row {
    std::int64_t layers, width, heads, total;
  };
  constexpr Row kRows[] = {{12, 1024, 16, 213'181'024}, {16, 1024, 16, 263'565'920}, {24, 1024, 16, 364'335'712},
                           {12, 1600, 16, 465'772'000}, {16, 1600, 16, 588'735'200}, {24, 1600, 16, 834'661'600},
                           {6, 512, 8, 49'957'472}};
  for (const Row& row : kRows) {
    CAPTURE(row.layers, row.width);
    ProductKeyTransformerOptions options{
        .vocabulary = 60000, .layers = row.layers, .width = row.width, .heads = row.heads};
    CHECK(count(options) == row.total);
    options.pre_norm = true;
    CHECK(count(options) == row.total + 2 * row.width);
  }
  // The parts, by the formulas of section 5.2.
  constexpr std::int64_t d = 1024;
  const auto layers = [](std::int64_t number, std::int64_t inner) {
    return count({.vocabulary = 60000, .layers = number, .width = d, .heads = 16, .inner = inner});
  };
  CHECK(layers(2, 0) - layers(1, 0) == 4 * (d * d + d) + 4 * d + 8 * d * d + 5 * d);
  CHECK(layers(1, 0) - layers(1, 1) == (4 * d - 1) * (2 * d + 1));
  CHECK(layers(1, 0) == 62'026'336 + 4'202'496 + 8'393'728);
}

TEST_CASE("product-key host: how parameters start", "[product-key]") {
  PlacedHost placed({.vocabulary = 300, .layers = 1, .width = 64, .heads = 2, .position_rows = 200});
  const auto deviation = [&](const std::string& name) {
    const reference::Array64 values = placed.value(name);
    return reference::norm(values) / std::sqrt(static_cast<double>(values.count()));
  };
  const auto largest = [&](const std::string& name) {
    double most = 0;
    for (const double value : placed.value(name).data) most = std::max(most, std::abs(value));
    return most;
  };
  for (const char* table : {"embedding.table", "positions"}) CHECK(deviation(table) == Approx(0.125).epsilon(0.03));
  for (const char* map :
       {"attention.query", "attention.key", "attention.value", "attention.output", "feed_forward.inner"})
    for (const char* part : {".weight", ".bias"}) {
      const std::string name = text("layers.0.", map, part);
      CAPTURE(name);
      CHECK(largest(name) <= 0.125);
      CHECK(largest(name) > 0.11);
    }
  CHECK(largest("layers.0.feed_forward.outer.weight") <= 1.0 / 16);
  CHECK(largest("layers.0.feed_forward.outer.weight") > 0.06);
  CHECK(largest("output.bias") <= 0.125);
  CHECK(largest("embedding_norm.bias") == 0);
  for (const double gain : placed.value("embedding_norm.gain").data) CHECK(gain == 1);
}

/// Shapes of the results of all dropouts on the tape, one after the other.
std::vector<Shape> dropped_shapes(PlacedHost& placed, std::int64_t streams, std::int64_t block) {
  placed.step.begin({});
  Tape tape(placed.step);
  placed.model.hidden(tape, placed.batch(random_tokens(streams * block, 7, 2), {}, streams), placed.past);
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < tape.size(); ++i)
    if (tape.entry(i).node->name().find("dropout") != std::string_view::npos)
      for (const int slot : tape.entry(i).outputs) shapes.push_back(tape.slot_shape(slot));
  return shapes;
}

TEST_CASE("product-key host: dropout acts on embeddings, sublayers' results and attention weights, in training alone",
          "[product-key]") {
  PlacedHost without(small_host());
  ProductKeyTransformerOptions options = small_host();
  options.dropout = 0.5;
  PlacedHost placed(options);
  CHECK(dropped_shapes(placed, 2, 3) == std::vector<Shape>(5, Shape{2, 3, 6}));
  options.dropout = 0;
  options.attention_dropout = 0.5;
  PlacedHost attention(options);
  const Ids tokens{1, 2, 3, 4}, targets{2, 3, 4, 5};
  for (PlacedHost* const one : {&without, &placed, &attention}) one->spread(7);
  const double loss = without.train(tokens, targets);
  CHECK(std::abs(placed.train(tokens, targets) - loss) > 1e-3);
  CHECK(std::abs(attention.train(tokens, targets) - loss) > 1e-4);
  CHECK(placed.run(tokens).data == without.run(tokens).data);
  CHECK(attention.run(tokens).data == without.run(tokens).data);
}

TEST_CASE("product-key host: what cannot work is refused by name and value", "[product-key]") {
  const auto refused = [](const std::function<void(ProductKeyTransformerOptions&)>& change, const char* option,
                          const char* got) {
    ProductKeyTransformerOptions options = small_host();
    change(options);
    CAPTURE(option);
    CHECK_THROWS_AS(ProductKeyTransformer(options), UsageError);
    CHECK_THROWS_WITH(ProductKeyTransformer(options),
                      ContainsSubstring(std::string("model: ") + option + " must be") && ContainsSubstring(got));
  };
  refused([](auto& o) { o.vocabulary = 0; }, "vocabulary", "got 0");
  refused([](auto& o) { o.layers = 0; }, "layers", "got 0");
  refused([](auto& o) { o.width = 0; }, "width", "got 0");
  refused([](auto& o) { o.heads = 4; }, "heads", "a divisor of width 6, got 4");
  refused([](auto& o) { o.heads = 0; }, "heads", "got 0");
  refused([](auto& o) { o.inner = -1; }, "inner", "got -1");
  refused([](auto& o) { o.position_rows = 0; }, "position_rows", "got 0");
  refused([](auto& o) { o.dropout = 1; }, "dropout", "got 1");
  refused([](auto& o) { o.attention_dropout = -0.1; }, "attention_dropout", "got -0.1");
  refused([](auto& o) { o.dropout = std::numeric_limits<double>::quiet_NaN(); }, "dropout", "nan");
  refused([](auto& o) { o.norm_epsilon = 0; }, "norm_epsilon", "got 0");
  refused([](auto& o) { o.attention_memory = -1; }, "attention_memory", "got -1");
}

TEST_CASE("product-key host: blocks that are too long, and pasts of other models, are refused", "[product-key]") {
  PlacedHost placed(small_host());
  placed.run(random_tokens(9, 7, 1));
  CHECK_THROWS_AS(placed.run(random_tokens(10, 7, 1)), UsageError);
  CHECK_THROWS_WITH(placed.run(random_tokens(10, 7, 1)),
                    ContainsSubstring("at most 9 tokens") && ContainsSubstring("got 10"));
  CHECK(placed.past.empty());
  CHECK(placed.model.frozen_past(placed.backend, placed.heap, 3, DType::f64, 9).empty());
  CHECK(placed.model.reach() == 9);
  placed.past.push_back(nullptr);
  CHECK_THROWS_WITH(placed.run({1}), ContainsSubstring("remembers nothing, got the past of 1 layers"));
}

}  // namespace
}  // namespace engram::harness::product_key_transformer_test

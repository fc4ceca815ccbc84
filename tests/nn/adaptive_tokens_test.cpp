/// T13 of [all-attention 12]: adaptive input and softmax through the real layers, against published numbers and
/// against their definition; and whole models with them: T6 and T14.

#include <cmath>
#include <map>

#include "tests/harness/catch.hpp"
#include "tests/nn/model_options.hpp"
#include "tests/nn/placed_model.hpp"
#include "tests/reference/adaptive_tokens.hpp"

namespace engram::harness::adaptive_tokens_test {
namespace {

using reference::Array64;
using reference::fill;

/// The two ends of a model with a vocabulary of 10 in clusters of 4, 3 and 3 words and widths 16, 4 and 1.
struct GoldenTokens final : Module {
  std::unique_ptr<TokenIo> tokens;
  explicit GoldenTokens(bool tie_tables = true, bool tie_projections = true)
      : tokens(make_token_io({.vocabulary = 10,
                              .width = 16,
                              .cutoffs = {4, 7},
                              .tie_tables = tie_tables,
                              .tie_projections = tie_projections})) {}
  void visit(Visitor& visit) override {
    visit("embedding", tokens->input());
    visit("output", tokens->output());
  }
};

struct GoldenBench : Bench {
  ParameterStore store;
  GoldenTokens golden;
  TokenPartition partition;

  explicit GoldenBench(DType dtype, bool tie_tables = true, bool tie_projections = true)
      : golden(tie_tables, tie_projections) {
    collect(golden, store);
    store.place(*backend, dtype, 1);
  }
  void set(const std::string& name, const Array64& values) { write(store.find(name)->value(), values); }
  void set_golden() {
    const std::int64_t sizes[] = {4, 3, 3}, widths[] = {16, 4, 1};
    for (int i = 0; i < 3; ++i) {
      set(text("embedding.clusters.", i, ".table"), fill(1 + i, {sizes[i], widths[i]}));
      set(text("embedding.clusters.", i, ".projection"), fill(4 + i, {16, widths[i]}));
      set(text("output.clusters.", i, ".bias"), fill(7 + i, {sizes[i]}));
    }
    set("output.cluster_head.weight", fill(10, {2, 16}));
    set("output.cluster_head.bias", fill(11, {2}));
  }
  TokenBatch batch(const std::vector<std::int32_t>& inputs, const std::vector<std::int32_t>& targets, bool padded) {
    const auto count = static_cast<std::int64_t>(inputs.size());
    partition.assign(*golden.tokens->clusters(), inputs, targets, padded);
    const Tokens values(partition.values().begin(), partition.values().end());
    return {.inputs = ids(Tokens(inputs.begin(), inputs.end()), {1, count}),
            .targets = {},
            .partition = &partition,
            .lists = ids(values, {static_cast<std::int64_t>(values.size())})};
  }
  /// -ln p of one target after the same state, for each word.
  std::vector<double> losses(const Array64& state, DType dtype) {
    std::vector<std::int32_t> words;
    Array64 states = reference::zeros({10, 16});
    for (std::int32_t word = 0; word < 10; ++word) {
      words.push_back(word);
      for (std::int64_t i = 0; i < 16; ++i) states.at(word, i) = state.at(i);
    }
    step.begin({});
    Tape tape(step);
    const TokenBatch block = batch(words, words, false);
    std::vector<double> sums(10);
    for (const LossPart& part : golden.tokens->losses(tape.constant(tensor(states, dtype)), block, 1)) {
      const Array64 rows = read(part.row_loss);
      for (std::size_t i = 0; i < rows.data.size(); ++i)
        sums[part.rows ? static_cast<std::size_t>((*part.rows)[i]) : i] += rows.data[i];
    }
    return sums;
  }
};

TEST_CASE("T13: with all parameters zero the probabilities are those of the clusters' sizes") {
  GoldenBench bench(DType::f64);
  for (const auto& [name, parameter] : bench.store.parameters()) {
    std::vector<std::int64_t> shape;
    for (int axis = 0; axis < parameter->shape().rank(); ++axis) shape.push_back(parameter->shape()[axis]);
    bench.set(name, reference::zeros(shape));
  }
  const std::vector<double> losses = bench.losses(fill(12, {16}), DType::f64);
  for (std::size_t word = 0; word < 10; ++word)
    CHECK(losses[word] == Approx(word < 4 ? 1.7917595 : 2.8903718).margin(5e-8));
}

TEST_CASE("T13: golden losses, probabilities and embeddings") {
  const double golden[] = {1.167926, 0.585708, 2.514304, 3.954595, 4.768253,
                           5.041129, 5.200074, 4.920371, 5.844420, 6.488369};
  for (const DType dtype : {DType::f64, DType::f32}) {
    CAPTURE(name_of(dtype));
    const double tolerance = dtype == DType::f64 ? 5.1e-7 : 5e-6;
    GoldenBench bench(dtype);
    bench.set_golden();
    const std::vector<double> losses = bench.losses(fill(12, {16}), dtype);
    double sum = 0;
    for (std::size_t word = 0; word < 10; ++word) {
      CHECK(losses[word] == Approx(golden[word]).margin(tolerance));
      sum += std::exp(-losses[word]);
    }
    CHECK(sum == Approx(1).margin(dtype == DType::f64 ? 1e-13 : 1e-6));

    Tape tape(bench.step, Tape::Mode::inference);
    const Variable state = tape.constant(bench.tensor(fill(12, {1, 16}), dtype));
    const std::vector<double> all = bench.golden.tokens->log_probabilities(state);
    REQUIRE(all.size() == 10);
    for (std::size_t word = 0; word < 10; ++word)
      CHECK(all[word] == Approx(-losses[word]).margin(dtype == DType::f64 ? 1e-12 : 1e-6));
    CHECK_THROWS_WITH(bench.golden.tokens->logits(state), ContainsSubstring("log_probabilities"));

    const Array64 vectors = bench.read(bench.golden.tokens->embed(tape, bench.batch({9, 0, 4}, {}, false)).value());
    REQUIRE(vectors.shape == std::vector<std::int64_t>{1, 3, 16});
    const double firsts[] = {0.265892, -8.663539, -1.733581}, norms[] = {2.577474, 24.735768, 4.730626};
    for (int row = 0; row < 3; ++row) {
      double squares = 0;
      for (std::int64_t i = 0; i < 16; ++i) squares += vectors.at(0, row, i) * vectors.at(0, row, i);
      CHECK(vectors.at(0, row, 0) == Approx(firsts[row]).margin(10 * tolerance));
      CHECK(std::sqrt(squares) == Approx(norms[row]).margin(10 * tolerance));
    }
  }
}

AllAttentionOptions small_model(bool tie_tables = true, bool tie_projections = true) {
  AllAttentionOptions options = model_options(
      MemoryMode::all, {.vocabulary = 23, .layers = 2, .width = 16, .inner = 0, .slots = 3, .max_span = 12, .ramp = 4});
  options.cutoffs = {6, 13};
  options.tie_tables = tie_tables;
  options.tie_projections = tie_projections;
  return options;
}

reference::AdaptiveTokens definition(PlacedModel& placed) {
  const AllAttentionOptions& options = placed.model.options();
  reference::AdaptiveTokens defined{.cutoffs = options.cutoffs,
                                    .tables = {},
                                    .projections = {},
                                    .out_tables = {},
                                    .out_projections = {},
                                    .biases = {},
                                    .cluster_weight = placed.value("output.cluster_head.weight"),
                                    .cluster_bias = placed.value("output.cluster_head.bias"),
                                    .natural_order = false};
  for (std::size_t i = 0; i <= options.cutoffs.size(); ++i) {
    const std::string in = text("embedding.clusters.", i, "."), out = text("output.clusters.", i, ".");
    defined.tables.push_back(placed.value(in + "table"));
    defined.projections.push_back(placed.value(in + "projection"));
    defined.out_tables.push_back(placed.value((options.tie_tables ? in : out) + "table"));
    defined.out_projections.push_back(placed.value((options.tie_projections ? in : out) + "projection"));
    defined.biases.push_back(placed.value(out + "bias"));
  }
  return defined;
}

TEST_CASE("embeddings and losses equal their definition, whatever is tied, and with padding") {
  for (const bool tie_tables : {true, false}) {
    for (const bool tie_projections : {true, false}) {
      PlacedModel placed(small_model(tie_tables, tie_projections));
      CHECK((placed.store.find("output.clusters.1.table") == nullptr) == tie_tables);
      CHECK((placed.store.find("output.clusters.1.projection") == nullptr) == tie_projections);
      const reference::AdaptiveTokens defined = definition(placed);
      const Tokens tokens = random_tokens(30, 23, 1), targets = random_tokens(30, 23, 2);
      const Array64 states = reference::RandomArrays(4).array({30, 16});
      for (const bool padded : {false, true}) {
        CAPTURE(tie_tables, tie_projections, padded);
        placed.step.begin({});
        Tape tape(placed.step, Tape::Mode::inference);
        const TokenBatch block = placed.batch(tokens, targets, 2, padded);
        const Array64 vectors = placed.read(placed.model.tokens().embed(tape, block).value());
        Array64 losses = reference::zeros({30});
        for (const LossPart& part : placed.model.tokens().losses(tape.constant(placed.tensor(states)), block, 0.25)) {
          const Array64 rows = placed.read(part.row_loss);
          double weighted = 0;
          const std::size_t count = part.rows ? part.rows->size() : rows.data.size();
          for (std::size_t i = 0; i < count; ++i) {
            losses.data[part.rows ? static_cast<std::size_t>((*part.rows)[i]) : i] += rows.data[i];
            weighted += 0.25 * rows.data[i];
          }
          CHECK(placed.read(part.loss.value()).data[0] == Approx(weighted).epsilon(1e-13));
        }
        for (std::size_t row = 0; row < 30; ++row) {
          const std::vector<double> expected = defined.embedding(tokens[row]);
          for (std::size_t i = 0; i < 16; ++i) CHECK(vectors.data[row * 16 + i] == Approx(expected[i]).margin(1e-12));
          const auto begin = states.data.begin() + static_cast<std::ptrdiff_t>(16 * row);
          const std::vector<double> all = defined.log_probabilities({begin, begin + 16});
          CHECK(losses.data[row] == Approx(-all[static_cast<std::size_t>(targets[row])]).margin(1e-12));
        }
      }
    }
  }
}

std::map<std::string, Array64> gradients_of(PlacedModel& placed) {
  std::map<std::string, Array64> all;
  for (const auto& [name, parameter] : placed.store.parameters()) all[name] = placed.gradient(name);
  return all;
}

/// The block's losses through both ends and the layers between; adds to the gradients.
double padded_loss(PlacedModel& placed, const Tokens& tokens, const Tokens& targets, bool padded) {
  ModelPast past = placed.hidden(2);
  placed.step.begin({});
  Tape tape(placed.step);
  const TokenBatch block = placed.batch(tokens, targets, 2, padded);
  std::vector<Variable> losses;
  double total = 0;
  for (LossPart& part : placed.model.tokens().losses(placed.model.hidden(tape, block, past), block, 1)) {
    total += placed.read(part.loss.value()).data[0];
    losses.push_back(std::move(part.loss));
  }
  if (placed.differentiates) tape.backward(losses);
  return total;
}

TEST_CASE("padding changes neither losses nor gradients; clusters without tokens have zero gradients") {
  PlacedModel placed(small_model());
  Tokens tokens = random_tokens(24, 23, 1), targets = random_tokens(24, 23, 2);
  for (const bool with_last : {true, false}) {
    if (!with_last)
      for (Tokens* words : {&tokens, &targets})
        for (std::int64_t& word : *words) word %= 13;
    placed.store.zero_gradients(placed.step);
    const double loss = padded_loss(placed, tokens, targets, false);
    const auto expected = gradients_of(placed);
    placed.store.zero_gradients(placed.step);
    CHECK(padded_loss(placed, tokens, targets, true) == Approx(loss).epsilon(1e-13));
    for (const auto& [name, gradient] : gradients_of(placed)) {
      CAPTURE(with_last, name);
      const double norm = reference::norm(expected.at(name));
      CHECK(reference::distance_between(gradient, expected.at(name)) <= 1e-12 * norm);
      const bool of_last = name.find("clusters.2.") != std::string::npos;
      CHECK((norm == 0) == (of_last && !with_last));
    }
  }
}

TEST_CASE("T14: gradients of a whole model with tied and untied clusters equal central differences", "[night]") {
  for (const bool tie_tables : {true, false}) {
    for (const bool tie_projections : {true, false}) {
      AllAttentionOptions options = small_model(tie_tables, tie_projections);
      options.embedding_dropout = 0.2;
      options.span = SpanKind::fixed;
      PlacedModel placed(options);
      reference::RandomArrays random(3);
      for (const auto& [name, parameter] : placed.store.parameters())
        // Tables with unit variance would give losses near 50, whose differences have few digits left.
        if (name.find("table") != std::string::npos)
          placed.set(name, random.array({parameter->shape()[0], parameter->shape()[1]}, 0.5));
      // Every cluster is met as an input and as a target.
      const Tokens tokens{0, 5, 6, 12, 13, 22, 3, 7, 15, 1, 6, 20}, targets{5, 6, 12, 13, 22, 2, 8, 15, 4, 7, 21, 0};
      placed.store.zero_gradients(placed.step);
      padded_loss(placed, tokens, targets, false);
      const auto gradients = gradients_of(placed);
      placed.differentiates = false;
      for (const auto& entry : placed.store.parameters()) {
        const std::string& name = entry.first;
        if (name.find("layers.") != std::string::npos && name.find("attention.query") == std::string::npos) continue;
        CAPTURE(tie_tables, tie_projections, name);
        // A word's vector of width 1 moves sixteen numbers: the loss is much more curved in it than in the others.
        const double step = name.starts_with("embedding.") ? 3e-6 : 1e-5;
        Array64 value = placed.value(name);
        const Array64 numeric = reference::central_differences(
            value,
            [&] {
              placed.set(name, value);
              return padded_loss(placed, tokens, targets, false);
            },
            step);
        placed.set(name, value);
        CHECK(reference::norm(numeric) > 1e-3);
        CHECK(reference::distance_between(gradients.at(name), numeric) <
              1e-7 * std::max(0.05, reference::norm(numeric)));
      }
    }
  }
}

TEST_CASE("T6: the lengths of blocks do not change the probabilities of a vocabulary in clusters") {
  AllAttentionOptions options = small_model();
  options.max_span = 40;
  PlacedModel placed(options);
  placed.set_spans(3);
  const Tokens tokens = random_tokens(60, 23, 8);
  const auto probabilities = [&](std::size_t block) {
    ModelPast past = block % 2 == 0 ? placed.hidden(1) : placed.ring(1);
    std::vector<double> all;
    for (std::size_t begin = 0; begin < tokens.size(); begin += block) {
      placed.step.begin({});
      Tape tape(placed.step, Tape::Mode::inference);
      const auto at = tokens.begin() + static_cast<std::ptrdiff_t>(begin);
      const Tokens part(at, at + static_cast<std::ptrdiff_t>(std::min(block, tokens.size() - begin)));
      const Variable hidden = placed.model.hidden(tape, placed.batch(part, {}, 1), past);
      for (const double value : placed.model.tokens().log_probabilities(hidden)) all.push_back(value);
    }
    return all;
  };
  const std::vector<double> expected = probabilities(60);
  REQUIRE(expected.size() == 60 * 23);
  for (std::size_t row = 0; row < 60; ++row) {
    double sum = 0;
    for (std::size_t word = 0; word < 23; ++word) sum += std::exp(expected[row * 23 + word]);
    CHECK(sum == Approx(1).epsilon(1e-12));
  }
  for (const std::size_t block : {48, 16, 5, 1}) {
    CAPTURE(block);
    const std::vector<double> got = probabilities(block);
    REQUIRE(got.size() == expected.size());
    double largest = 0;
    for (std::size_t i = 0; i < got.size(); ++i) largest = std::max(largest, std::abs(got[i] - expected[i]));
    CHECK(largest < 1e-11);
  }
}

TEST_CASE("a vocabulary in clusters starts as the formulas say") {
  AllAttentionOptions options = small_model();
  options.vocabulary = 900;
  options.width = 256;
  options.cutoffs = {300, 600};
  PlacedModel placed(options);
  const auto deviation = [&](const std::string& name) {
    const Array64 values = placed.value(name);
    return reference::norm(values) / std::sqrt(static_cast<double>(values.count()));
  };
  const auto bound = [&](const std::string& name) {
    double largest = 0;
    for (const double value : placed.value(name).data) largest = std::max(largest, std::abs(value));
    return largest;
  };
  CHECK(deviation("embedding.clusters.1.table") == Approx(1).epsilon(0.02));
  for (const auto& [name, inputs] : std::map<std::string, double>{{"embedding.clusters.0.projection", 256},
                                                                  {"embedding.clusters.1.projection", 64},
                                                                  {"output.clusters.2.bias", 16},
                                                                  {"output.cluster_head.weight", 256}}) {
    CAPTURE(name);
    CHECK(bound(name) <= 1 / std::sqrt(inputs));
    CHECK(bound(name) > 0.95 / std::sqrt(inputs));
  }
  AllAttentionOptions scaled = options;
  scaled.table_init = TableInit::scaled;
  PlacedModel calm(scaled);
  for (const auto& [table, width] : std::map<std::string, double>{{"0", 256}, {"1", 64}, {"2", 16}}) {
    const Array64 values = calm.value("embedding.clusters." + table + ".table");
    CHECK(reference::norm(values) / std::sqrt(static_cast<double>(values.count())) ==
          Approx(1 / std::sqrt(width)).epsilon(0.03));
  }
  // Embeddings have the deviation sqrt(d / 3).
  placed.step.begin({});
  Tape tape(placed.step, Tape::Mode::inference);
  const Tokens tokens = random_tokens(400, 900, 8);
  const Array64 vectors = placed.read(placed.model.tokens().embed(tape, placed.batch(tokens, {}, 1)).value());
  CHECK(reference::norm(vectors) / std::sqrt(400.0 * 256) == Approx(std::sqrt(256 / 3.0)).epsilon(0.05));
}

TEST_CASE("a block without its partition, or of other clusters, is refused") {
  PlacedModel placed(small_model());
  ModelPast past = placed.hidden(1);
  Tape tape(placed.step, Tape::Mode::inference);
  CHECK_THROWS_WITH(placed.model.forward(tape, placed.ids({1, 2}, {1, 2}), past), ContainsSubstring("partition"));
  TokenBatch block = placed.batch({1, 2}, {}, 1);
  CHECK_THROWS_WITH(placed.model.tokens().losses(tape.constant(placed.tensor(reference::zeros({2, 16}))), block, 1),
                    ContainsSubstring("2 targets, got 3 and 0"));
}

}  // namespace
}  // namespace engram::harness::adaptive_tokens_test

/// What Transformer-XL starts from ([transformer-xl 4.1]), and word dropout (section 4.6).

#include <algorithm>
#include <cmath>
#include <set>

#include "nn/past/segment_memory.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_xl.hpp"
#include "tests/nn/xl_variants.hpp"

namespace engram::harness::transformer_xl_start_test {
namespace {

/// Every kind of parameter that the family has, each with many numbers.
std::vector<TransformerXlOptions> wide_models() {
  std::vector<TransformerXlOptions> models;
  for (const PositionKind kind : {PositionKind::relative, PositionKind::shaw, PositionKind::absolute_learned}) {
    TransformerXlOptions options = small_xl(kind);
    options.vocabulary = 300;
    options.width = 64;
    options.heads = 4;
    options.depth = 16;
    options.inner = 80;
    options.tie_position_biases = kind != PositionKind::relative;
    options.shaw_terms = ShawTerms::abcd;
    if (kind != PositionKind::absolute_learned) {
      options.cutoffs = {100, 200};
      options.divisor = 2;
      options.untied_projections = {1};
    }
    options.tie_tables = kind == PositionKind::relative;
    models.push_back(options);
  }
  return models;
}

void check_uniform(const reference::Array64& values, double bound) {
  const auto [least, most] = std::ranges::minmax(values.data);
  const auto count = static_cast<double>(values.count());
  CHECK(least >= -bound);
  CHECK(most <= bound);
  // One in eight is beyond either; that none of 64 is has the chance of 2e-4, and the seed stays the same.
  CHECK(least < -0.75 * bound);
  CHECK(most > 0.75 * bound);
  // Of U(-r, r) the deviation is r / sqrt(3); that of its square's mean over n numbers 2 r^2 / sqrt(45 n).
  const double square = reference::norm(values) * reference::norm(values) / count;
  CHECK(square == Approx(bound * bound / 3).margin(5 * 2 * bound * bound / std::sqrt(45 * count)).epsilon(0));
}

void check_normal(const reference::Array64& values, double mean, double deviation) {
  const auto count = static_cast<double>(values.count());
  double square = 0, largest = 0;
  for (const double value : values.data) {
    square += (value - mean) * (value - mean) / count;
    largest = std::max(largest, std::abs(value - mean));
  }
  CHECK(std::sqrt(square) == Approx(deviation).epsilon(5 / std::sqrt(2 * count)));
  if (count > 2000) CHECK(largest > 2.5 * deviation);  // no uniform distribution goes beyond 1.73
}

TEST_CASE("weights and tables start normal or uniform, as told; projections, gains and biases do as ever") {
  for (TransformerXlOptions options : wide_models())
    for (const WeightStart init : {WeightStart::normal, WeightStart::uniform})
      for (const EmbeddingStart embedding :
           {EmbeddingStart::as_weights, EmbeddingStart::normal, EmbeddingStart::uniform}) {
        options.init = init;
        options.embedding_init = embedding;
        options.init_range = 0.2;
        options.embedding_init_range = 0.5;
        options.init_deviation = 0.03;
        PlacedXl placed(options);
        const auto check_weights = [&](const reference::Array64& values) {
          if (init == WeightStart::normal) return check_normal(values, 0, 0.03);
          check_uniform(values, 0.2);
        };
        for (const auto& [name, parameter] : placed.store.parameters()) {
          CAPTURE(name_of(options.positions), name_of(init), name_of(embedding), name);
          const reference::Array64 values = placed.value(name);
          const bool table = name.starts_with("embedding") && name.ends_with("table");
          if (name.ends_with(".bias") || name.ends_with("distance_biases")) {
            CHECK(reference::norm(values) == 0);
          } else if (name.ends_with(".gain")) {
            check_normal(values, 1, options.norm_init_deviation);
          } else if (name.ends_with(".projection")) {
            check_normal(values, 0, options.projection_init_deviation);
          } else if (table && embedding == EmbeddingStart::normal) {
            check_normal(values, 0, 0.03);
          } else if (table && embedding == EmbeddingStart::uniform) {
            check_uniform(values, 0.5);
          } else {
            check_weights(values);
          }
        }
      }
}

TEST_CASE("usual options start as they always have: N(0, 0.02^2)") {
  const TransformerXlOptions options;
  for (const Initializer& start : {options.weight_start(), options.table_start()}) {
    CHECK(start.kind == Initializer::Kind::normal);
    CHECK(start.value == 0.02);
    CHECK(start.mean == 0);
  }
  TransformerXlOptions uniform;
  uniform.init = WeightStart::uniform;
  CHECK(uniform.weight_start().value == 0.1);  // the only other choice
  CHECK(uniform.table_start().kind == Initializer::Kind::uniform);
}

/// The states that go into the first layer, [B, S, D], after a block of training.
reference::Array64 inputs_of(PlacedXl& placed, const Ids& tokens, std::int64_t streams, std::uint64_t step) {
  placed.step.begin({.step = step});
  Tape tape(placed.step);
  ModelPast past = placed.memory(streams);
  placed.model.hidden(tape, placed.batch(tokens, {}, streams), past);
  return to_host(placed.backend, dynamic_cast<SegmentMemory&>(*past.front()).states());
}

TEST_CASE("word dropout drops a word at all its places in a block or at none, anew in every step") {
  TransformerXlOptions plain = small_xl(PositionKind::relative);
  plain.vocabulary = 40;
  TransformerXlOptions clusters = plain;
  clusters.cutoffs = {10, 20};
  clusters.divisor = 2;
  for (TransformerXlOptions options : {plain, clusters}) {
    constexpr std::int64_t kStreams = 3, kBlock = 60;
    options.memory = kBlock;
    CAPTURE(options.cutoffs.size());
    PlacedXl whole(options);
    options.word_dropout = 0.25;
    PlacedXl placed(options);
    whole.spread(5);
    placed.spread(5);
    const Ids tokens = random_ids(kStreams * kBlock, 40, 3);
    const reference::Array64 kept = inputs_of(whole, tokens, kStreams, 0);
    std::vector<std::vector<bool>> steps;
    for (std::uint64_t step = 0; step < 8; ++step) {
      const reference::Array64 states = inputs_of(placed, tokens, kStreams, step);
      REQUIRE(states.count() == kept.count());
      std::vector<bool> dropped(40), seen(40);
      for (std::size_t place = 0; place < tokens.size(); ++place) {
        const auto word = static_cast<std::size_t>(tokens[place]);
        if (place % kBlock == 0) {  // nothing is before it that it could see
          for (std::size_t d = place * 4; d < place * 4 + 4; ++d) CHECK(states.data[d] == kept.data[d]);
          continue;
        }
        const bool zero = states.data[place * 4] == 0;
        if (!seen[word]) dropped[word] = zero;
        seen[word] = true;
        CHECK(dropped[word] == zero);
        for (std::size_t d = place * 4; d < place * 4 + 4; ++d)
          CHECK(states.data[d] == Approx(zero ? 0.0 : kept.data[d] / 0.75).epsilon(1e-12).margin(1e-14));
      }
      steps.push_back(dropped);
    }
    double share = 0;
    for (const std::vector<bool>& dropped : steps) share += double(std::ranges::count(dropped, true)) / (8 * 40);
    CHECK(share == Approx(0.25).margin(5 * std::sqrt(0.25 * 0.75 / (8 * 40))).epsilon(0));
    CHECK(steps[0] != steps[1]);
  }
}

TEST_CASE("a deep model whose words are nearly all dropped has gradients of a usual size") {
  constexpr std::int64_t kStreams = 8;
  TransformerXlOptions options = small_xl(PositionKind::relative);
  options.vocabulary = 40;
  options.layers = 16;
  options.word_dropout = 0.9;
  // Without a memory no first token of any block sees another one.
  for (const auto& [memory, blocks] : {std::pair<std::int64_t, int>{options.memory, 1}, {0, 3}}) {
    CAPTURE(memory, blocks);
    options.memory = memory;
    PlacedXl placed(options, DType::f32);
    ModelPast past = placed.memory(kStreams);
    for (int block = 0; block < blocks; ++block) {
      placed.store.zero_gradients(placed.step);
      const Ids tokens = random_ids(kStreams * 24, options.vocabulary, 2 * block + 1);
      placed.train(tokens, random_ids(kStreams * 24, options.vocabulary, 2 * block + 2), past, 1.0 / 24, kStreams);
      for (const auto& [name, parameter] : placed.store.parameters()) {
        CAPTURE(block, name);
        const std::vector<double> gradient = placed.gradient(name).data;
        CHECK(std::ranges::all_of(gradient, [](double number) { return std::abs(number) < 1e3; }));
      }
    }

    // A block of one token is its first.
    ModelPast fresh = placed.memory();
    CHECK(std::isfinite(placed.train({3}, {4}, fresh, 1.0)));
  }
}

TEST_CASE("word dropout is of the input alone, and of training alone") {
  TransformerXlOptions options = small_xl(PositionKind::relative);
  options.vocabulary = 12;
  PlacedXl without(options);
  options.word_dropout = 0.5;
  PlacedXl tied(options);
  options.tie_tables = false;
  PlacedXl untied(options);
  for (PlacedXl* placed : {&without, &tied, &untied}) placed->spread(9);
  const Ids tokens = random_ids(24, 12, 1), targets = random_ids(24, 12, 2);

  // Evaluation is as without it, and draws nothing.
  ModelPast memory = tied.memory(), plain_memory = without.memory(), ring = tied.ring(1, 24);
  const std::vector<double> expected = without.run(tokens, plain_memory).data;
  CHECK(tied.run(tokens, memory).data == expected);
  CHECK(tied.step.next_random().operation == 0);
  CHECK(farthest_apart(tied.run(tokens, ring).data, expected) < 1e-12);

  // Rows of the input's own table have a gradient where their word was kept; those of a shared one always have the
  // output's.
  const auto rows = [&](PlacedXl& placed) {
    ModelPast past = placed.memory();
    placed.store.zero_gradients(placed.step);
    placed.train(tokens, targets, past, 1.0 / 24);
    const reference::Array64 gradient = placed.gradient("embedding.table");
    std::vector<bool> moved;
    for (std::int64_t word = 0; word < 12; ++word) {
      bool any = false;
      for (std::int64_t d = 0; d < options.width; ++d) any = any || gradient.at(word, d) != 0;
      moved.push_back(any);
    }
    return moved;
  };
  const reference::Array64 states = inputs_of(untied, tokens, 1, 0);
  const std::vector<bool> moved = rows(untied);
  const std::vector<bool> shared = rows(tied);
  CHECK(std::ranges::count(shared, true) == 12);
  std::int64_t dropped = 0;
  const std::size_t first = tokens.size() - static_cast<std::size_t>(options.memory);  // states are the last of them
  for (std::size_t place = first; place < tokens.size(); ++place) {
    if (tokens[place] == tokens[0]) continue;  // which is never dropped there
    const bool zero = states.data[(place - first) * 4] == 0;
    CHECK(moved[static_cast<std::size_t>(tokens[place])] == !zero);
  }
  for (const std::int64_t word : std::set<std::int64_t>(tokens.begin(), tokens.end()))
    dropped += moved[static_cast<std::size_t>(word)] ? 0 : 1;
  CHECK(dropped > 0);
  CHECK(std::ranges::count(moved, true) > 0);
}

}  // namespace
}  // namespace engram::harness::transformer_xl_start_test

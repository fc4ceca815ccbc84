/// Whole models against their executable definition, and the properties that every model must have: T5, T6, T19 of
/// [all-attention 12].

#include <cmath>
#include <tuple>
#include <vector>

#include "tests/harness/catch.hpp"
#include "tests/nn/model_options.hpp"
#include "tests/nn/placed_model.hpp"

namespace engram::harness::model_test {
namespace {

AllAttentionOptions tiny(MemoryMode mode) {
  return model_options(mode,
                       {.vocabulary = 11, .layers = 3, .width = 8, .inner = 10, .slots = 5, .max_span = 40, .ramp = 6});
}

/// Runs three blocks through both and returns the largest difference of the logits.
double difference_from_definition(PlacedModel& placed) {
  const reference::CharacterModel defined = placed.definition();
  reference::ModelState state;
  ModelPast past = placed.hidden(2);
  double largest = 0;
  for (const std::int64_t length : {7, 1, 20, 33}) {
    const Tokens tokens = random_tokens(2 * length, placed.model.options().vocabulary, 50 + std::uint64_t(length));
    const reference::Array64 expected = reference::character_model(defined, tokens, tokens, 2, state).logits;
    largest = std::max(largest, largest_difference(expected, placed.logits(tokens, 2, past)));
  }
  return largest;
}

TEST_CASE("models equal their definition over several blocks") {
  for (const MemoryMode mode : kMemoryModes) {
    for (const Pad pad : {Pad::attend_zero, Pad::mask}) {
      AllAttentionOptions options = tiny(mode);
      options.pad = pad;
      CAPTURE(name_of(mode), name_of(pad));
      PlacedModel placed(options);
      placed.set_spans(9);
      CHECK(difference_from_definition(placed) < 1e-11);

      options.span = SpanKind::fixed;
      PlacedModel fixed(options);
      CHECK(difference_from_definition(fixed) < 1e-11);
    }
  }
}

TEST_CASE("dynamic spans and positions on the value side equal the definition over several blocks, in every mode") {
  for (const MemoryMode mode : kMemoryModes)
    for (const SpanKind span : {SpanKind::adaptive, SpanKind::fixed, SpanKind::dynamic})
      for (const PositionValues values : {PositionValues::none, PositionValues::shared, PositionValues::own}) {
        CAPTURE(name_of(mode), name_of(span), name_of(values));
        AllAttentionOptions options = tiny(mode);
        options.span = span;
        options.position_values = values;
        PlacedModel placed(options);
        if (span != SpanKind::fixed) placed.set_spans(9);
        CHECK(difference_from_definition(placed) < 1e-11);
      }
}

TEST_CASE("spans at both ends, the paper's mask and windows shorter than the ramp equal the definition") {
  AllAttentionOptions options = tiny(MemoryMode::all);
  options.mask_offset = 1;
  PlacedModel placed(options);
  CHECK(difference_from_definition(placed) < 1e-11);  // zeta 0
  for (const char* layer : {"layers.0", "layers.1", "layers.2"})
    placed.set(text(layer, ".attention.span"), reference::constant(1, {2}));
  CHECK(difference_from_definition(placed) < 1e-11);

  options = tiny(MemoryMode::all);
  for (const std::int64_t span : {1, 3}) {
    options.max_span = span;
    PlacedModel narrow(options);
    CHECK(difference_from_definition(narrow) < 1e-11);
  }
}

TEST_CASE("T5: a token changes nothing before it, and its own position") {
  for (const Pad pad : {Pad::attend_zero, Pad::mask}) {
    AllAttentionOptions options = tiny(MemoryMode::all);
    options.pad = pad;
    PlacedModel placed(options);
    placed.set_spans(4);
    Tokens tokens = random_tokens(130, 11, 1);
    ModelPast past = placed.hidden(1);
    const reference::Array64 before = placed.logits(tokens, 1, past);
    tokens[100] = (tokens[100] + 1) % 11;
    past = placed.hidden(1);
    const reference::Array64 after = placed.logits(tokens, 1, past);
    bool equal_before = true, differs_at = false;
    for (std::int64_t t = 0; t < 100; ++t)
      for (std::int64_t v = 0; v < 11; ++v) equal_before = equal_before && before.at(0, t, v) == after.at(0, t, v);
    for (std::int64_t v = 0; v < 11; ++v) differs_at = differs_at || before.at(0, 100, v) != after.at(0, 100, v);
    CHECK(equal_before);
    CHECK(differs_at);
  }
}

/// Logits of a text that is read in blocks of these lengths, one after the other.
reference::Array64 in_blocks(PlacedModel& placed, const Tokens& tokens, const std::vector<std::int64_t>& lengths,
                             ModelPast past) {
  reference::Array64 all{{1, 0, placed.model.options().vocabulary}, {}};
  auto first = tokens.begin();
  for (const std::int64_t length : lengths) {
    const reference::Array64 logits = placed.logits(Tokens(first, first + length), 1, past);
    all.shape[1] += length;
    all.data.insert(all.data.end(), logits.data.begin(), logits.data.end());
    first += length;
  }
  reference::require(first == tokens.end(), "in_blocks: blocks make the whole text");
  return all;
}

/// 120 as blocks of one length. Short blocks begin the text, and end it, where a ring takes the place of what it has
/// had longest: those between are one block.
std::vector<std::int64_t> blocks_of(std::int64_t length) {
  if (length > 5) return std::vector<std::int64_t>(static_cast<std::size_t>(120 / length), length);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(15 / length), length);
  lengths.push_back(65);
  lengths.insert(lengths.end(), static_cast<std::size_t>(40 / length), length);
  return lengths;
}

/// Every memory mode, and every kind of spans and of value-side positions.
std::vector<std::tuple<MemoryMode, SpanKind, PositionValues>> variants() {
  std::vector<std::tuple<MemoryMode, SpanKind, PositionValues>> all;
  for (const MemoryMode mode : kMemoryModes) all.emplace_back(mode, SpanKind::adaptive, PositionValues::none);
  all.emplace_back(MemoryMode::all, SpanKind::fixed, PositionValues::shared);
  all.emplace_back(MemoryMode::all, SpanKind::dynamic, PositionValues::own);
  all.emplace_back(MemoryMode::head_split, SpanKind::dynamic, PositionValues::shared);
  return all;
}

TEST_CASE("T6: blocks, caches, ring buffers and streams do not change the result") {
  for (const auto& [mode, span, values] : variants()) {
    for (const Pad pad : {Pad::attend_zero, Pad::mask}) {
      AllAttentionOptions options = tiny(mode);
      options.span = span;
      options.position_values = values;
      if (options.slots > 0) options.slots = 6;
      options.max_span = 80;
      options.ramp = 16;
      options.pad = pad;
      CAPTURE(name_of(mode), name_of(span), name_of(values), name_of(pad));
      PlacedModel placed(options);
      if (span != SpanKind::fixed) placed.set_spans(12);
      const Tokens tokens = random_tokens(120, 11, 77);
      const reference::Array64 whole = in_blocks(placed, tokens, {120}, placed.hidden(1));
      for (const std::int64_t length : {120, 24, 8, 5, 1}) {
        CAPTURE(length);
        const std::vector<std::int64_t> blocks = blocks_of(length);
        CHECK(largest_difference(whole, in_blocks(placed, tokens, blocks, placed.hidden(1))) < 1e-12);
        CHECK(largest_difference(whole, in_blocks(placed, tokens, blocks, placed.ring(1))) < 1e-12);
      }

      const Tokens other = random_tokens(120, 11, 78);
      Tokens both = tokens;
      both.insert(both.end(), other.begin(), other.end());
      ModelPast past = placed.hidden(2);
      const reference::Array64 together = placed.logits(both, 2, past);
      reference::Array64 apart = whole;
      const reference::Array64 second = in_blocks(placed, other, {120}, placed.hidden(1));
      apart.shape[0] = 2;
      apart.data.insert(apart.data.end(), second.data.begin(), second.data.end());
      CHECK(largest_difference(together, apart) < 1e-12);
    }
  }
}

TEST_CASE("T19: the first loss is near ln V + 1/6") {
  for (const std::int64_t vocabulary : {205, 28}) {
    AllAttentionOptions options = tiny(MemoryMode::all);
    options.vocabulary = vocabulary;
    options.width = 128;
    options.max_span = 64;
    options.ramp = 32;
    options.slots = 32;
    PlacedModel placed(options, DType::f32);
    const Tokens tokens = random_tokens(512, vocabulary, 5), targets = random_tokens(512, vocabulary, 6);
    ModelPast past = placed.hidden(4);
    const double loss = placed.train(tokens, targets, 4, past, 0) / 512;
    CHECK(std::abs(loss - (std::log(double(vocabulary)) + 1.0 / 6)) < 0.1);
  }
}

TEST_CASE("a key-value ring refuses training and changed windows") {
  PlacedModel placed(tiny(MemoryMode::all));
  ModelPast past = placed.ring(1);
  const Tokens tokens = random_tokens(5, 11, 1);
  CHECK_THROWS_AS(placed.train(tokens, tokens, 1, past, 0), Error);
  placed.set("layers.0.attention.span", reference::constant(0.9, {2}));
  CHECK_THROWS_AS(placed.logits(tokens, 1, past), Error);
}

TEST_CASE("a model refuses tokens of another type or shape and a past of another model") {
  PlacedModel placed(tiny(MemoryMode::all));
  Tape tape(placed.step, Tape::Mode::inference);
  ModelPast past = placed.hidden(1);
  CHECK_THROWS_AS(placed.model.forward(tape, placed.ids({1, 2}, {2}), past), ShapeError);
  CHECK_THROWS_AS(placed.model.forward(tape, placed.tensor(reference::zeros({1, 2})), past), DTypeError);
  CHECK_THROWS_WITH(placed.model.forward(tape, placed.ids({1, 2}, {2, 1}), past),
                    ContainsSubstring("the past is of 1 streams") && ContainsSubstring("block of 2"));
  TokenBatch batch;
  batch.inputs = placed.ids({1, 2}, {1, 2});
  batch.context = 2;
  CHECK_THROWS_WITH(placed.model.hidden(tape, batch, past), ContainsSubstring("context must be in [0, 2)"));
  past.pop_back();
  CHECK_THROWS_AS(placed.model.forward(tape, placed.ids({1, 2}, {1, 2}), past), Error);
}

}  // namespace
}  // namespace engram::harness::model_test

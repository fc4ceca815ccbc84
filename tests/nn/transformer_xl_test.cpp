/// Transformer-XL and its baselines against their executable definition, and T10, T13, T15, T16 of [transformer-xl 12].

#include <cmath>

#include "autograd/tape_listing.hpp"
#include "nn/layers/device_constants.hpp"
#include "nn/past/segment_memory.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/gold_xl.hpp"
#include "tests/nn/xl_variants.hpp"

namespace engram::harness::transformer_xl_test {
namespace {

/// Two streams through several blocks; the largest difference from the definition, which takes one stream at a time.
double difference_from_definition(PlacedXl& placed, ModelPast past, const Ids& lengths) {
  const reference::TransformerXl defined = placed.definition();
  std::vector<reference::XlState> states(2);
  double largest = 0;
  for (const std::int64_t length : lengths) {
    const Ids tokens = random_ids(2 * length, placed.model.options().vocabulary, 70 + std::uint64_t(length));
    std::vector<double> expected;
    for (std::int64_t stream = 0; stream < 2; ++stream) {
      const Ids own(tokens.begin() + stream * length, tokens.begin() + (stream + 1) * length);
      const reference::Array64 all = reference::xl_log_probabilities(
          defined, reference::xl_hidden(defined, own, states[static_cast<std::size_t>(stream)]));
      expected.insert(expected.end(), all.data.begin(), all.data.end());
    }
    largest = std::max(largest, farthest_apart(expected, placed.run(tokens, past, 2).data));
  }
  return largest;
}

TEST_CASE("models of the Transformer-XL family equal their definition over several blocks") {
  for (const XlVariant& variant : xl_variants()) {
    TransformerXlOptions options = variant.options;
    CAPTURE(variant.name);
    PlacedXl placed(options);
    placed.spread(11);
    const Ids lengths{3, 1, 7, 2, 5, 1};  // shorter and longer than the memory
    CHECK(difference_from_definition(placed, placed.memory(2), lengths) < 1e-11);
    CHECK(difference_from_definition(placed, placed.ring(2, 7), lengths) < 1e-11);
  }
}

TEST_CASE("clamps and every visibility equal the definition, from both starts") {
  for (const PositionKind kind : {PositionKind::relative, PositionKind::shaw})
    for (const Visibility visibility : {Visibility::all, Visibility::last_memory, Visibility::last_memory_plus_1})
      for (const MemoryStart start : {MemoryStart::empty, MemoryStart::zeros})
        for (const std::int64_t clamp : {-1, 1, 2, 4, 100}) {
          TransformerXlOptions options = small_xl(kind);
          options.layers = 2;
          options.visibility = visibility;
          options.memory_start = start;
          options.clamp = clamp;
          CAPTURE(name_of(kind), name_of(visibility), name_of(start), clamp);
          PlacedXl placed(options);
          placed.spread(12);
          CHECK(difference_from_definition(placed, placed.memory(2), {3, 5, 1}) < 1e-11);
          CHECK(difference_from_definition(placed, placed.ring(2, 5), {3, 5, 1}) < 1e-11);
        }
}

TEST_CASE("T10: attention without scores is the mean of the visible values, of zero vectors too") {
  for (const MemoryStart start : {MemoryStart::empty, MemoryStart::zeros}) {
    TransformerXlOptions options = small_xl(PositionKind::relative);
    options.layers = 1;
    options.memory_start = start;
    PlacedXl placed(options);
    placed.spread(3);
    for (const std::string name : {"layers.0.attention.query", "layers.0.attention.position", "position_biases.content",
                                   "position_biases.position"}) {
      // With r = 0 the position bias does not matter; with q = u = v = 0 the positions do not.
      const bool keep =
          start == MemoryStart::zeros ? name == "position_biases.position" : name == "layers.0.attention.position";
      if (!keep) placed.set(name, std::vector<double>(std::size_t(placed.parameter(name).shape().count()), 0.0));
    }
    ModelPast past = placed.memory();
    const Ids tokens{2, 0, 4, 1};
    placed.step.begin({});
    Tape tape(placed.step, Tape::Mode::inference);
    ModelTrace trace(placed.step.objects());
    trace.keep_results = true;
    placed.model.hidden(tape, placed.batch(tokens, {}, 1), past, &trace);
    const reference::Array64 z = to_host(placed.backend, trace.layers[0].seen.out.value());
    const reference::Array64 table = placed.value("embedding.table"), weight = placed.value("layers.0.attention.value");
    std::vector<double> sum(std::size_t(weight.axis(0)), 0.0);
    for (std::int64_t i = 0; i < 4; ++i) {
      const double keys = static_cast<double>(i + 1 + (start == MemoryStart::zeros ? options.memory : 0));
      for (std::int64_t k = 0; k < weight.axis(0); ++k) {
        for (std::int64_t d = 0; d < options.width; ++d)
          sum[std::size_t(k)] += weight.at(k, d) * 2 * table.at(tokens[std::size_t(i)], d);  // sqrt(4) = 2
        CHECK(z.at(0, i, k) == Approx(sum[std::size_t(k)] / keys).margin(1e-13));
      }
    }
  }
}

TEST_CASE("T10: without keys and queries weights are a function of the distance") {
  TransformerXlOptions options = small_xl(PositionKind::relative);
  options.visibility = Visibility::last_memory;
  PlacedXl placed(options);
  placed.spread(3);
  for (const char* name : {"layers.0.attention.query", "layers.0.attention.key"})
    placed.set(name, std::vector<double>(std::size_t(placed.parameter(name).shape().count()), 0.0));
  ModelPast past = placed.memory();
  placed.run({0, 1, 2, 3, 4}, past);
  placed.step.begin({});
  Tape tape(placed.step);
  ModelTrace trace(placed.step.objects());
  trace.keep_results = true;
  placed.model.hidden(tape, placed.batch({3, 0, 2, 2}, {}, 1), past, &trace);
  const AttentionTrace& layer = trace.layers[0];
  REQUIRE(layer.seen.kept);
  const reference::Array64 kept = to_host(placed.backend, layer.seen.kept);
  const std::int64_t row = options.memory;  // distances M - 1 to 0
  REQUIRE(kept.count() == options.heads * 4 * row);
  for (std::int64_t head = 0; head < options.heads; ++head)
    for (std::int64_t query = 1; query < 4; ++query)
      for (std::int64_t p = 0; p < row; ++p) {
        const double first = kept.data[std::size_t(head * 4 * row + p)];
        CHECK(first > 0);
        CHECK(kept.data[std::size_t((head * 4 + query) * row + p)] == Approx(first).epsilon(1e-12));
      }
}

TEST_CASE("T10: sinusoids, all sines first, and again from a longer table") {
  Backend& backend = *available_backends().front();
  HeapAllocator heap(backend);
  Step step(backend, heap, 1);
  DeviceConstants constants;
  for (const std::int64_t rows : {4, 9, 4}) {
    const reference::Array64 table = to_host(backend, constants.sinusoids(step, rows, 4, DType::f64));
    CHECK(table.axis(0) == rows);
    CHECK(farthest_apart({table.data.begin() + 12, table.data.begin() + 16},
                         {0.14112001, 0.02999550, -0.98999250, 0.99955003}) < 1e-8);
  }
}

TEST_CASE("T10: losses of a model of zeros") {
  PlacedXl placed(gold_options());
  for (const auto& [name, parameter] : placed.store.parameters())
    placed.set(name, std::vector<double>(std::size_t(parameter->shape().count()), name.ends_with(".gain") ? 1.0 : 0.0));
  ModelPast past = placed.memory();
  const reference::Array64 all = placed.run({0, 7, 9, 3}, past);
  for (std::int64_t i = 0; i < 4; ++i) {
    for (const std::int64_t word : {0, 4}) CHECK(-all.at(0, i, word) == Approx(1.94591015).epsilon(1e-8));
    for (const std::int64_t word : {5, 10}) CHECK(-all.at(0, i, word) == Approx(3.04452244).epsilon(1e-8));
  }
}

TEST_CASE("T13: pieces of a batch have the gradients and memories of the whole") {
  for (const XlVariant& variant : xl_variants()) {
    CAPTURE(variant.name);
    const Ids first = random_ids(4 * 3, 5, 31), tokens = random_ids(4 * 3, 5, 32), targets = random_ids(4 * 3, 5, 33);
    std::map<std::string, std::vector<double>> whole;
    std::vector<double> memory;
    for (const std::int64_t pieces : {1, 2, 4}) {
      CAPTURE(pieces);
      PlacedXl placed(variant.options);
      placed.spread(4);
      placed.store.zero_gradients(placed.step);
      const std::int64_t streams = 4 / pieces;
      std::vector<double> states;
      for (std::int64_t piece = 0; piece < pieces; ++piece) {
        const auto part = [&](const Ids& all) {
          return Ids(all.begin() + piece * streams * 3, all.begin() + (piece + 1) * streams * 3);
        };
        ModelPast past = placed.memory(streams);
        placed.run(part(first), past, streams);
        placed.train(part(tokens), part(targets), past, 1.0 / 12, streams);
        const reference::Array64 held = to_host(placed.backend, dynamic_cast<SegmentMemory&>(*past.back()).states());
        states.insert(states.end(), held.data.begin(), held.data.end());
      }
      if (pieces == 1) memory = states;
      CHECK((memory.empty() || farthest_apart(states, memory) < 1e-13));
      for (const auto& [name, parameter] : placed.store.parameters()) {
        CAPTURE(name);
        const reference::Array64 gradient = placed.gradient(name);
        if (pieces == 1) whole[name] = gradient.data;
        CHECK(farthest_apart(gradient.data, whole[name]) <= 1e-12 + 1e-6 * reference::norm(gradient));
      }
    }
  }
}

TEST_CASE("T15: fifty tokens from rings equal the prefix encoded again before each of them") {
  for (const XlVariant& variant : xl_variants()) {
    TransformerXlOptions options = variant.options;
    if (options.memory == 0 || options.memory_start == MemoryStart::zeros) continue;
    CAPTURE(variant.name);
    options.memory = 60;
    if (options.visibility != Visibility::all) continue;
    PlacedXl placed(options);
    placed.spread(6);
    const Ids prompt{1, 4, 2};
    ModelPast ring = placed.ring(1, 3), memory = placed.memory();
    reference::RandomArrays drawn(8), drawn_again(8);
    const auto sample = [](const std::vector<double>& log_p, reference::RandomArrays& random) {
      double rest = 0.5 + 0.5 * random.number();
      std::int64_t word = 0;
      while (word + 1 < static_cast<std::int64_t>(log_p.size()) && (rest -= std::exp(log_p[std::size_t(word)])) > 0)
        ++word;
      return word;
    };
    const auto last = [](const reference::Array64& all) {
      return std::vector<double>(all.data.end() - all.axis(2), all.data.end());
    };
    std::vector<double> stepped = last(placed.run(prompt, ring)), remembered = last(placed.run(prompt, memory));
    Ids text = prompt, text_again = prompt;
    double largest = 0;
    for (int token = 0; token < 50; ++token) {
      ModelPast fresh = placed.memory();
      const std::vector<double> encoded = last(placed.run(text_again, fresh));
      largest = std::max({largest, farthest_apart(stepped, encoded), farthest_apart(remembered, encoded)});
      text.push_back(sample(stepped, drawn));
      text_again.push_back(sample(encoded, drawn_again));
      stepped = last(placed.run({text.back()}, ring));
      remembered = last(placed.run({text.back()}, memory));
    }
    CHECK(largest < 1e-12);
    CHECK(text == text_again);
  }
}

/// Shapes of the results of all dropouts on the tape, one after the other.
std::vector<Shape> dropped_shapes(PlacedXl& placed, std::int64_t streams, std::int64_t block) {
  placed.step.begin({});
  Tape tape(placed.step);
  ModelPast past = placed.memory(streams);
  const Variable hidden = placed.model.hidden(tape, placed.batch(random_ids(streams * block, 5, 2), {}, streams), past);
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < tape.size(); ++i)
    if (tape.entry(i).node->name().find("dropout") != std::string_view::npos)
      for (const int slot : tape.entry(i).outputs) shapes.push_back(tape.slot_shape(slot));
  return shapes;
}

TEST_CASE("T16: where dropout acts, and that evaluation draws nothing") {
  TransformerXlOptions options = small_xl(PositionKind::relative);
  options.layers = 2;
  PlacedXl without(options);
  options.dropout = 0.5;
  PlacedXl placed(options);
  placed.spread(7);
  without.spread(7);
  // A table without gradient is not recorded when it is dropped: what is left are embedding, per layer attention's
  // result, activations and result of the feed-forward network, and the last states.
  const Shape state{2, 3, 4}, inner{2, 3, options.inner};
  CHECK(dropped_shapes(placed, 2, 3) == std::vector<Shape>{state, state, inner, state, state, inner, state, state});
  ModelPast a = placed.memory(), b = without.memory();
  for (int block = 0; block < 2; ++block) CHECK(placed.run({1, 2, 3}, a).data == without.run({1, 2, 3}, b).data);
}

TEST_CASE("T16: dropout whose masks keep everything equals none") {
  for (const XlVariant& variant : xl_variants())
    for (const bool over_time : {false, true}) {
      CAPTURE(variant.name, over_time);
      const Ids tokens = random_ids(6, 5, 1), targets = random_ids(6, 5, 2);
      const auto loss = [&](double rate) {
        TransformerXlOptions options = variant.options;
        options.dropout = options.attention_dropout = rate;
        options.dropout_over_time = over_time;
        PlacedXl placed(options);
        placed.spread(7);
        ModelPast past = placed.memory(2);
        placed.run(tokens, past, 2);
        return placed.train(tokens, targets, past, 1.0 / 6, 2);
      };
      const double none = loss(0);
      CHECK(loss(1e-6) == none);  // rounded to 0
      // One in 65536 is dropped, none of these few; what is kept grows by as much.
      CHECK(loss(1.0 / 65536) == Approx(none).epsilon(1e-3));
      CHECK(loss(1.0 / 65536) != none);
      CHECK(std::abs(loss(0.5) - none) > 1e-3);
    }
}

TEST_CASE("T16: one mask of the position table for layers and streams") {
  // Equal streams have equal attention when nothing but the table is dropped, which one mask for all streams keeps so.
  TransformerXlOptions options = small_xl(PositionKind::relative);
  options.dropout = 0.5;
  PlacedXl placed(options);
  placed.spread(7);
  placed.step.begin({});
  Tape tape(placed.step);
  ModelTrace trace(placed.step.objects());
  trace.keep_results = true;
  ModelPast past = placed.memory(2);
  // No vectors, no biases of keys: scores are those of v and the table alone.
  for (const char* name : {"embedding.table", "position_biases.content"})
    placed.set(name, std::vector<double>(std::size_t(placed.parameter(name).shape().count()), 0.0));
  placed.model.hidden(tape, placed.batch({0, 0, 0, 0, 0, 0}, {}, 2), past, &trace);
  const reference::Array64 lse = to_host(placed.backend, trace.layers[0].seen.lse);
  const std::int64_t half = lse.count() / 2;
  bool varies = false;
  for (std::int64_t i = 0; i < half; ++i) {
    CHECK(lse.data[std::size_t(i)] == lse.data[std::size_t(half + i)]);
    varies = varies || lse.data[std::size_t(i)] != lse.data[0];
  }
  CHECK(varies);
}

TEST_CASE("T16: dropout over time has one mask for all positions of a stream") {
  TransformerXlOptions options = small_xl(PositionKind::relative);
  options.dropout = 0.5;
  options.dropout_over_time = true;
  PlacedXl placed(options);
  placed.spread(7);
  placed.step.begin({});
  Tape tape(placed.step);
  ModelPast past = placed.memory(3);
  const Variable hidden = placed.model.hidden(tape, placed.batch(random_ids(15, 5, 4), {}, 3), past);
  const reference::Array64 states = to_host(placed.backend, hidden.value());
  std::int64_t dropped = 0;
  for (std::int64_t stream = 0; stream < 3; ++stream)
    for (std::int64_t d = 0; d < options.width; ++d) {
      const bool zero = states.at(stream, 0, d) == 0;
      dropped += zero ? 1 : 0;
      for (std::int64_t t = 1; t < 5; ++t) CHECK((states.at(stream, t, d) == 0) == zero);
    }
  CHECK(dropped > 0);
  CHECK(dropped < 3 * options.width);
}

}  // namespace
}  // namespace engram::harness::transformer_xl_test

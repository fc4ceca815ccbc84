/// T11 of [transformer-xl 12], parameter counts from models without memory; and what section 11 says
/// is refused.

#include <functional>
#include <limits>

#include "nn/past/segment_memory.hpp"
#include "nn/past/segment_ring.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_xl.hpp"
#include "tests/nn/xl_variants.hpp"

namespace engram::harness::transformer_xl_options_test {
namespace {

std::int64_t count(const TransformerXlOptions& options) {
  TransformerXlModel model(options);
  ParameterStore store;
  collect(model, store);
  return store.count();
}

struct Sizes {
  std::int64_t vocabulary, layers, width, heads, depth, inner;
};
TransformerXlOptions sized(const Sizes& sizes) {
  TransformerXlOptions options;
  options.vocabulary = sizes.vocabulary;
  options.layers = sizes.layers;
  options.width = sizes.width;
  options.heads = sizes.heads;
  options.depth = sizes.depth;
  options.inner = sizes.inner;
  return options;
}
TransformerXlOptions wikitext(TransformerXlOptions options, std::int64_t divisor) {
  options.cutoffs = {20000, 40000, 200000};
  options.divisor = divisor;
  options.untied_projections = {0};
  return options;
}
TransformerXlOptions billion(TransformerXlOptions options, bool tensorflow) {
  options.cutoffs = {60000, 100000, 640000};
  options.divisor = 4;
  options.tie_projections = false;
  options.project_same_width = !tensorflow;
  options.tie_position_biases = !tensorflow;
  return options;
}
TransformerXlOptions untied(TransformerXlOptions options) {
  options.tie_position_biases = false;
  return options;
}

TEST_CASE("T11: parameters of the published models") {
  const Sizes base{204, 12, 512, 8, 64, 2048}, large{204, 24, 1024, 8, 128, 3072};
  CHECK(count(sized(base)) == 41055436);
  CHECK(count(sized(large)) == 277231820);
  CHECK(count(sized({27, 12, 512, 8, 64, 2048})) == 40964635);
  CHECK(count(sized({27, 24, 1024, 8, 128, 3072})) == 277050395);
  const Sizes standard{267735, 16, 410, 10, 41, 2100};
  CHECK(count(wikitext(sized(standard), 1)) == 151107538);
  CHECK(count(untied(wikitext(sized(standard), 1))) == 151119838);
  CHECK(count(untied(wikitext(sized({267735, 18, 1024, 16, 64, 4096}), 4))) == 285205322);
  CHECK(count(untied(wikitext(sized({267735, 16, 1024, 16, 64, 4096}), 4))) == 257919818);
  const Sizes scripts{793471, 18, 1024, 8, 128, 4096};
  CHECK(count(billion(sized(scripts), false)) == 357812082);
  CHECK(count(billion(sized(scripts), true)) == 355749746);
  CHECK(count(billion(sized({793471, 20, 1024, 8, 128, 6144}), true)) == 466962290);
  const Sizes largest{793471, 24, 1280, 16, 80, 8192};
  CHECK(count(billion(sized(largest), true)) == 838078062);
  CHECK(count(billion(sized(largest), false)) == 841295982);
}

TEST_CASE("T11: parameters of the stand-ins, and of the other kinds of positions") {
  CHECK(count(sized({204, 18, 640, 10, 64, 2208})) == 87965708);
  CHECK(count(sized({10000, 16, 360, 10, 36, 900})) == 24389920);
  CHECK(count(wikitext(sized({267735, 14, 400, 10, 40, 900}), 1)) == 128684338);
  CHECK(count(gold_options()) == 1187);
  CHECK(count(billion(sized({793471, 20, 1024, 8, 128, 2048}), true)) == 299108210);

  // N layers, a = D: 5 D a + 2 D F + F + D + 4 D each, and what 5.1 says of the kinds.
  const std::int64_t n = 3, d = 12, heads = 3, depth = 4, f = 20, v = 50, rows = 17;
  TransformerXlOptions options = sized({v, n, d, heads, depth, f});
  const std::int64_t layer = 5 * d * d + 2 * d * f + f + 5 * d, ends = v * d + v;
  CHECK(count(options) == n * layer + 2 * d + ends);
  CHECK(count(untied(options)) == n * layer + 2 * d * n + ends);
  options.tie_tables = false;
  CHECK(count(options) == n * layer + 2 * d + ends + v * d);
  options.tie_tables = true;
  options.positions = PositionKind::shaw;
  options.shaw_terms = ShawTerms::abcd;
  options.position_rows = rows;
  CHECK(count(options) == n * (layer - d * d) + n * d + n * rows * heads * (depth + 1) + ends);
  options.shaw_terms = ShawTerms::ab;
  CHECK(count(options) == n * (layer - d * d) + n * rows * d + ends);
  options.positions = PositionKind::absolute_learned;
  CHECK(count(options) == n * (layer - d * d) + n * rows * d + ends);
  options.positions = PositionKind::absolute_sinusoidal;
  options.position_rows = 0;
  CHECK(count(options) == n * (layer - d * d) + ends);
}

TEST_CASE("options of the Transformer-XL family that are refused name themselves and their value") {
  const auto refused = [](const std::function<void(TransformerXlOptions&)>& change, const std::string& option,
                          const std::string& value) {
    TransformerXlOptions options = gold_options();
    change(options);
    CAPTURE(option, value);
    CHECK_THROWS_WITH(options.check(), StartsWith("model: " + option) && ContainsSubstring(value));
    CHECK_THROWS_AS(TransformerXlModel(options), UsageError);
  };
  refused([](auto& o) { o.cutoffs = {5, 5}; }, "cutoffs", "got 5");
  refused([](auto& o) { o.cutoffs = {5, 11}; }, "cutoffs", "got 11");
  refused([](auto& o) { o.cutoffs = {0, 5}; }, "cutoffs", "got 0");
  refused([](auto& o) { o.divisor = 4; }, "divisor", "got 4");
  refused([](auto& o) { o.width = 7; }, "width", "got 7");
  refused([](auto& o) { o.depth = 0, o.heads = 3; }, "heads", "got 3");
  refused([](auto& o) { o.depth = 0, o.heads = 0; }, "heads", "got 0");
  TransformerXlOptions none;
  none.depth = none.heads = 0;
  CHECK(none.head_depth() == 0);  // asked for before anything is refused; found by fuzzing
  refused([](auto& o) { o.visibility = Visibility::last_memory, o.memory = 0; }, "memory", "last_memory, got 0");
  refused([](auto& o) { o.visibility = Visibility::last_memory_plus_1, o.memory = 0; }, "memory", "got 0");
  refused([](auto& o) { o.positions = PositionKind::absolute_sinusoidal; }, "memory", "got 5");
  refused(
      [](auto& o) {
        o.positions = PositionKind::absolute_learned;
        o.depth = 4;
        o.position_rows = 9;
      },
      "memory", "got 5");
  refused(
      [](auto& o) {
        o.positions = PositionKind::absolute_learned;
        o.memory = 0;
        o.position_rows = 9;
      },
      "depth", "got 3");
  refused([](auto& o) { o.positions = PositionKind::shaw; }, "position_rows", "got 0");
  refused([](auto& o) { o.position_rows = 3; }, "position_rows", "got 3");
  refused([](auto& o) { o.memory = -1; }, "memory", "got -1");
  refused([](auto& o) { o.dropout = 1; }, "dropout", "got 1");
  refused([](auto& o) { o.attention_dropout = -0.1; }, "attention_dropout", "got -0.1");
  refused([](auto& o) { o.word_dropout = 1; }, "word_dropout", "got 1");
  refused([](auto& o) { o.word_dropout = -0.1; }, "word_dropout", "got -0.1");
  refused([](auto& o) { o.init_range = -0.5; }, "init_range", "got -0.5");
  refused([](auto& o) { o.init_range = std::numeric_limits<double>::infinity(); }, "init_range", "got inf");
  refused([](auto& o) { o.embedding_init_range = -2; }, "embedding_init_range", "got -2");
  refused([](auto& o) { o.untied_projections = {3}; }, "untied_projections", "got 3");
  refused([](auto& o) { o.norm_epsilon = 0; }, "norm_epsilon", "got 0");
  refused([](auto& o) { o.inner = 0; }, "inner", "got 0");

  TransformerXlOptions allowed = gold_options();
  allowed.clamp = -1;  // off
  allowed.cutoffs = {};
  allowed.untied_projections = {};
  allowed.check();
  allowed.positions = PositionKind::shaw;
  allowed.position_rows = 1;
  allowed.width = 7;  // no sinusoids
  allowed.check();
}

TEST_CASE("blocks that do not fit a model or its past are refused") {
  PlacedXl placed(small_xl(PositionKind::relative));
  ModelPast past = placed.memory(2);
  CHECK_THROWS_WITH(placed.run({1, 2, 3}, past, 1),
                    ContainsSubstring("2 streams") && ContainsSubstring("a block of 1"));
  CHECK_THROWS_WITH(placed.run({1, 2, 3}, past, 3),
                    ContainsSubstring("2 streams") && ContainsSubstring("a block of 3"));
  placed.run({1, 2, 3, 4}, past, 2);
  CHECK_THROWS_WITH(placed.run({1, 2, 3}, past, 1),
                    ContainsSubstring("2 streams") && ContainsSubstring("a block of 1"));

  ModelPast ring = placed.ring(1, 2);
  placed.run({1, 2}, ring);
  CHECK_THROWS_WITH(placed.run({1, 2, 3}, ring), ContainsSubstring("at most 2") && ContainsSubstring("got 3"));
  CHECK_THROWS_WITH(placed.train({1}, {2}, ring, 1), ContainsSubstring("inference"));
  past.pop_back();
  CHECK_THROWS_WITH(placed.run({1, 2}, past, 2), ContainsSubstring("1 layers, got 0"));
  CHECK_THROWS_AS(placed.model.set_context({.memory = 0, .visibility = Visibility::last_memory}), UsageError);

  PlacedXl learned(small_xl(PositionKind::absolute_learned));
  ModelPast none = learned.memory();
  learned.run(random_ids(9, 5, 1), none);
  CHECK_THROWS_WITH(learned.run(random_ids(10, 5, 1), none),
                    ContainsSubstring("9 rows") && ContainsSubstring("10 tokens"));
}

TEST_CASE("a memory of another length can be gone on with: a longer one is cut, a shorter one grows") {
  TransformerXlOptions options = small_xl(PositionKind::relative);
  PlacedXl placed(options);
  placed.spread(5);
  for (const std::int64_t length : {2, 7}) {
    CAPTURE(length);
    // The last `length` states of a memory of seven.
    placed.model.set_context({.memory = 7});
    ModelPast seven = placed.memory();
    placed.run({0, 1, 2, 3, 4, 0, 1, 2}, seven);
    const reference::Array64 states = to_host(placed.backend, dynamic_cast<SegmentMemory&>(*seven.front()).states());
    placed.model.set_context({.memory = 4});
    ModelPast loaded = placed.memory(), own = placed.memory();
    auto& memory = dynamic_cast<SegmentMemory&>(*loaded.front());
    memory.restore(length, length);
    placed.write(memory.states(), {states.data.end() - length * 4, states.data.end()});
    const Ids before = length == 2 ? Ids{1, 2} : Ids{3, 4, 0, 1, 2};
    placed.run(before, own);
    for (const Ids& block : {Ids{3, 3, 1}, Ids{4, 0}})
      CHECK(farthest_apart(placed.run(block, loaded).data, placed.run(block, own).data) < 1e-13);
  }
}

TEST_CASE("undo() takes a block back, and replayed() does what a block did on the host") {
  PlacedXl placed(small_xl(PositionKind::relative));
  placed.spread(5);
  ModelPast past = placed.memory();
  placed.run({0, 1, 2, 3, 4}, past);
  placed.run({1, 1}, past);  // both buffers are there now
  auto& memory = dynamic_cast<SegmentMemory&>(*past.front());
  const std::vector<double> before = to_host(placed.backend, memory.states()).data;
  std::vector<std::int64_t> key, key_after;
  memory.append_state(key);
  placed.run({2, 3, 4}, past);
  CHECK(memory.valid() == 10);
  memory.undo(3);
  CHECK(memory.valid() == 7);
  CHECK(to_host(placed.backend, memory.states()).data == before);
  memory.append_state(key_after);
  CHECK(key == key_after);
  memory.replayed(3);
  CHECK(memory.valid() == 10);
  CHECK(to_host(placed.backend, memory.states()).data != before);
  memory.reset();
  CHECK(memory.valid() == 0);
  CHECK(memory.states().shape()[1] == 0);
}

}  // namespace
}  // namespace engram::harness::transformer_xl_options_test

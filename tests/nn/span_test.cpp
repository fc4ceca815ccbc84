/// What a span means for windows and caches: T11 of [all-attention 12], rounding, and spans that change.

#include "nn/layers/attention_span.hpp"

#include <limits>

#include "core/rules/span_mask.hpp"
#include "tests/harness/catch.hpp"
#include "tests/nn/placed_model.hpp"
#include "tests/reference/span_rules.hpp"

namespace engram::harness::span_test {
namespace {

TEST_CASE("T11: the trim table") {
  struct Row {
    double zeta;
    int max_span, ramp, size, trim, window, cache;
  };
  for (const Row& row :
       {Row{0, 100, 32, 32, 64, 36, 100}, Row{0, 32, 32, 32, 0, 32, 32}, Row{0, 16, 32, 16, 0, 16, 16},
        Row{.5, 1024, 32, 544, 448, 576, 640}, Row{0, 2048, 32, 32, 1984, 64, 128}, Row{0, 8192, 32, 32, 8128, 64, 128},
        Row{.25, 8192, 32, 2080, 6080, 2112, 2176}, Row{1, 8192, 32, 8192, 0, 8192, 8192}}) {
    CAPTURE(row.zeta, row.max_span);
    const SpanTrim trim = span_trim(row.zeta, row.max_span, row.ramp);
    CHECK(trim.size == row.size);
    CHECK(trim.trim == row.trim);
    CHECK(trim.window == row.window);
    CHECK(trim.cache == row.cache);
    AttentionSpan span(3, 8, {.max_span = row.max_span, .ramp = row.ramp, .init = row.zeta});
    CHECK(span.cache_length() == row.cache);
  }
}

TEST_CASE("every head computes its own reach and the corner of its ramp, in steps of 16, at most S") {
  Bench bench;
  ParameterStore store;
  AttentionSpan span(4, 8, {.max_span = 200, .ramp = 32});
  collect(span, store);
  store.place(*bench.backend, DType::f32, 1);
  CHECK(span.windows().window == std::vector<std::int32_t>{48, 48, 48, 48});
  bench.write(store.find("span")->value(), reference::array({4}, {0, 0.0775, 0.08, 1}));
  span.refresh(*bench.backend);
  CHECK(span.reach() == std::vector<std::int64_t>{32, 48, 48, 200});
  CHECK(span.windows().window == std::vector<std::int32_t>{48, 64, 64, 200});
  CHECK(span.cache_length() == 200);
  // No window may leave out a slot that has a weight, whatever the span.
  reference::RandomArrays random(8);
  for (int k = 0; k < 100; ++k) {
    reference::Array64 zeta = reference::zeros({4});
    for (double& share : zeta.data) share = float(0.5 + 0.5 * random.number());
    bench.write(store.find("span")->value(), zeta);
    span.refresh(*bench.backend);
    for (std::size_t h = 0; h < 4; ++h) {
      const std::int64_t window = span.windows().window[h];
      if (window < 200) CHECK(reference::raw_span_mask(window + 1, zeta.data[h], 200, 32) < 0);
      CHECK(window <= span.cache_length());
    }
  }
}

TEST_CASE("a span that is not finite stops with its name and head") {
  Bench bench;
  ParameterStore store;
  AttentionSpan span(2, 8, {.max_span = 64});
  collect(span, store);
  store.place(*bench.backend, DType::f64, 1);
  bench.write(store.find("span")->value(), reference::array({2}, {0, std::numeric_limits<double>::quiet_NaN()}));
  try {
    span.refresh(*bench.backend);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("span") && ContainsSubstring("head 1"));
  }
}

TEST_CASE("a cache keeps what the span needs; a span that outgrew it is counted and reads zeros") {
  AllAttentionOptions options;
  options.vocabulary = 5;
  options.layers = 1;
  options.width = 4;
  options.heads = 2;
  options.slots = 2;
  options.max_span = 400;
  PlacedModel placed(options);
  ModelPast past = placed.hidden(1);
  placed.logits(random_tokens(300, 5, 1), 1, past);
  auto& cache = dynamic_cast<HiddenCache&>(*past[0]);
  CHECK(cache.states().shape() == Shape{1, 144, 4});  // window 80 for S = 400, 64 spare
  CHECK(cache.valid() == 300);
  placed.logits(random_tokens(3, 5, 2), 1, past);
  CHECK(cache.shortfalls() == 0);
  const Tokens block = random_tokens(6, 5, 3);
  const reference::Array64 states = placed.read(cache.states());
  placed.set("layers.0.attention.span", reference::constant(0.75, {2}));
  const reference::Array64 grown = placed.logits(block, 1, past);
  CHECK(cache.shortfalls() == 1);
  CHECK(cache.states().shape()[1] == 400);

  // The same with the missing positions written out as zeros.
  ModelPast padded = placed.hidden(1);
  auto& long_cache = dynamic_cast<HiddenCache&>(*padded[0]);
  long_cache.restore(400, 303);
  reference::Array64 full = reference::zeros({1, 400, 4});
  std::copy(states.data.begin(), states.data.end(), full.data.end() - std::ptrdiff_t(states.data.size()));
  placed.write(long_cache.states(), full);
  CHECK(largest_difference(grown, placed.logits(block, 1, padded)) < 1e-13);
}

TEST_CASE("options of models that make no sense are refused by name") {
  const auto message = [](auto change) {
    AllAttentionOptions options;
    options.vocabulary = 5;
    options.layers = 1;
    options.width = 4;
    options.heads = 2;
    options.slots = 2;
    options.max_span = 8;
    change(options);
    try {
      AllAttentionModel model(options);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  using Options = AllAttentionOptions;
  CHECK(message([](Options&) {}).empty());
  CHECK_THAT(message([](Options& o) { o.heads = 3; }), ContainsSubstring("heads") && ContainsSubstring("3"));
  CHECK_THAT(message([](Options& o) { o.vocabulary = 0; }), ContainsSubstring("vocabulary"));
  CHECK_THAT(message([](Options& o) { o.max_span = 0; }), ContainsSubstring("max_span"));
  CHECK_THAT(message([](Options& o) { o.ramp = 0; }), ContainsSubstring("ramp"));
  CHECK_THAT(message([](Options& o) { o.slots = -1; }), ContainsSubstring("slots") && ContainsSubstring("-1"));
  CHECK_THAT(message([](Options& o) { o.inner = 5; }), ContainsSubstring("inner"));
  CHECK_THAT(message([](Options& o) { o.memory_mode = MemoryMode::transformer; }), ContainsSubstring("inner"));
  CHECK_THAT(message([](Options& o) { o.memory_mode = MemoryMode::none; }), ContainsSubstring("slots"));
  CHECK_THAT(message([](Options& o) { o.dropout = 1; }), ContainsSubstring("dropout"));
  CHECK_THAT(message([](Options& o) { o.embedding_dropout = -0.1; }), ContainsSubstring("embedding_dropout"));
  CHECK_THAT(message([](Options& o) { o.span_init = 1.01; }), ContainsSubstring("span_init"));
  CHECK_THAT(message([](Options& o) { o.mask_offset = 2; }), ContainsSubstring("mask_offset"));
  CHECK_THAT(message([](Options& o) {
               o.memory_mode = MemoryMode::head_split;
               o.heads = 1;
             }),
             ContainsSubstring("heads must be even for memory_mode head_split, got 1"));
  CHECK_THAT(message([](Options& o) { o.memory_mode = MemoryMode::ff_attn; }), ContainsSubstring("inner"));
}

}  // namespace
}  // namespace engram::harness::span_test

/// Segments for training and evaluation: what is fed, what is predicted, what memory must keep.

#include <algorithm>
#include <cmath>
#include <numeric>

#include "apps/data/blocks/segment_evaluation.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/data/counted_tokens.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::segments_test {

using namespace engram::data;

namespace {

/// Counts how often each token is a target, and checks what holds for every block.
class Targets {
 public:
  explicit Targets(std::size_t total) : times(total) {}

  void add(const Block& block) {
    const int predicted = block.length - block.context;
    const auto count = static_cast<std::size_t>(block.rows * predicted);
    REQUIRE(block.inputs.size() == static_cast<std::size_t>(block.rows * block.length));
    REQUIRE((block.targets.size() == count && block.scored.size() == count && predicted > 0));
    REQUIRE(block.scored_count == std::count(block.scored.begin(), block.scored.end(), 1));
    for (std::int64_t row = 0; row < block.rows; ++row) {
      for (int m = 0; m < block.length; ++m)
        REQUIRE(block.inputs[static_cast<std::size_t>(row * block.length + m)] == block.first + row * block.stride + m);
      for (int i = 0; i < predicted; ++i) {
        const std::int32_t target = block.targets[static_cast<std::size_t>(row * predicted + i)];
        REQUIRE(target == block.first + row * block.stride + block.context + i + 1);
        ++times.at(static_cast<std::size_t>(target));
      }
    }
    scored += block.scored_count;
    ++blocks;
  }

  std::vector<int> times;
  std::int64_t scored = 0, blocks = 0;
};

/// One pass of a reader, whose next block must be the first of a pass.
Targets one_pass(SegmentReader& reader) {
  Targets targets(static_cast<std::size_t>(reader.state().total));
  std::uint64_t wraps = 0;
  Block block;
  for (;;) {
    const ReaderState before = reader.state();
    reader.next(block);
    if (targets.blocks > 0 && reader.state().wraps > wraps) {
      CHECK(block.zero_caches);
      reader.restore(before);
      return targets;
    }
    REQUIRE(block.zero_caches == (targets.blocks == 0));
    wraps = reader.state().wraps;  // counted with the first block of a pass
    targets.add(block);
  }
}

Targets whole(EvaluationPlan& plan, std::size_t total) {
  Targets targets(total);
  Block block;
  while (plan.next(block)) targets.add(block);
  REQUIRE(targets.blocks == plan.block_count());
  REQUIRE(targets.scored == plan.scored_count());
  return targets;
}

}  // namespace

TEST_CASE("segments: 103 tokens in 10 rows are 90 predictions a pass", "[data][transformer-xl][T18]") {
  const TokenIds ids = count_up(103);
  for (const int segment : {1, 2, 4, 8, 9, 50})
    for (const int extension : {0, 1, 3, 20}) {
      CAPTURE(segment, extension);
      SegmentReader reader(TokenView(ids), 10, {.segment = segment, .extension = extension}, 1);
      CHECK(reader.dropped() == 3);
      for (int pass = 0; pass < 2; ++pass) {
        const Targets targets = one_pass(reader);
        CHECK(targets.scored == 90);
        CHECK(targets.blocks == (9 + segment - 1) / segment);
        // Every token that a row holds, but its first, is a target once.
        for (std::size_t token = 0; token < 103; ++token)
          REQUIRE(targets.times[token] == (token < 100 && token % 10 != 0 ? 1 : 0));
      }
      SegmentEvaluation plan(TokenView(ids), segment, extension, 10);
      CHECK(plan.scored_count() == 90);
      for (int pass = 0; pass < 2; ++pass) {
        CHECK(whole(plan, 103).times == one_pass(reader).times);
        plan.begin();
      }
    }
}

TEST_CASE("segments: an extension is old tokens, none at the start of a pass", "[data][transformer-xl][T6]") {
  // The worked example T6 of [transformer-xl 12]: extension 1, 3 new tokens.
  const TokenIds ids = count_up(10);
  SegmentReader reader(TokenView(ids), 1, {.segment = 3, .extension = 1}, 1);
  Block block;
  const auto expect = [&](const TokenIds& inputs, const TokenIds& targets, int context, bool first) {
    reader.next(block);
    CHECK(block.inputs == inputs);
    CHECK(block.targets == targets);
    CHECK(block.context == context);
    CHECK(block.fed_again == 1);
    CHECK(block.zero_caches == first);
    CHECK(block.length == static_cast<int>(inputs.size()));
  };
  expect({0, 1, 2}, {1, 2, 3}, 0, true);
  expect({2, 3, 4, 5}, {4, 5, 6}, 1, false);
  expect({5, 6, 7, 8}, {7, 8, 9}, 1, false);
  expect({0, 1, 2}, {1, 2, 3}, 0, true);
  CHECK(reader.state().wraps == 1);
  CHECK(reader.longest_block() == 4);

  // An extension that is longer than what was read takes all of it, and memory (T6's rule: all but what is fed again)
  // then joins on to what the next block feeds.
  SegmentReader longer(TokenView(ids), 1, {.segment = 2, .extension = 5}, 1);
  std::int64_t memory_end = 0;
  for (int step = 0; step < 4; ++step) {
    longer.next(block);
    CAPTURE(step);
    CHECK(block.first == memory_end);
    memory_end = block.first + block.length - block.fed_again;
    CHECK(block.context == std::min(5, 2 * step));
  }
  CHECK(block.inputs == TokenIds{1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("segments: rows are streams, the last segment of a pass may be short", "[data][transformer-xl]") {
  const TokenIds ids = count_up(15);
  SegmentReader reader(TokenView(ids), 2, {.segment = 4, .extension = 2}, 1);
  Block block;
  reader.next(block);
  CHECK(block.inputs == TokenIds{0, 1, 2, 3, 7, 8, 9, 10});
  reader.next(block);
  CHECK(block.inputs == TokenIds{2, 3, 4, 5, 9, 10, 11, 12});
  CHECK(block.targets == TokenIds{5, 6, 12, 13});
  CHECK((block.rows == 2 && block.length == 4 && block.context == 2));
  CHECK((block.first == 2 && block.stride == 7));
  CHECK(reader.dropped() == 1);
}

TEST_CASE("segments: half of the loss, by overlap and by skipping", "[data][transformer-xl][T17]") {
  const TokenIds ids = count_up(41);
  SegmentReader overlap(TokenView(ids), 1, half_loss(8, HalfLoss::overlap), 1);
  const Targets every = one_pass(overlap);
  CHECK(every.scored == 40);
  CHECK(std::count(every.times.begin(), every.times.end(), 1) == 40);
  CHECK(every.times[0] == 0);
  Block block;
  overlap.next(block);
  overlap.next(block);
  CHECK((block.length == 8 && block.context == 4 && block.fed_again == 4));

  SegmentReader skip(TokenView(ids), 1, half_loss(8, HalfLoss::skip), 1);
  const Targets half = one_pass(skip);
  CHECK(half.scored == 20);
  for (int token = 0; token < 41; ++token)
    // Predicted from positions 4 to 7 of every segment.
    CHECK(half.times[static_cast<std::size_t>(token)] == (token > 0 && (token - 1) % 8 >= 4 ? 1 : 0));
  skip.next(block);
  skip.next(block);
  CHECK((block.first == 8 && block.length == 8 && block.context == 4 && block.fed_again == 0));

  // 37 inputs: the rest of 5 has one position in the latest half; of 36 inputs it has none, and the pass ends before
  // it.
  const auto scored_of = [&](std::int64_t total) {
    SegmentReader reader(TokenView(ids.data(), 4, total), 1, half_loss(8, HalfLoss::skip), 1);
    return one_pass(reader).scored;
  };
  CHECK(scored_of(38) == 17);
  CHECK(scored_of(37) == 16);
  for (const int length : {0, 1, 7, -2})
    CHECK_THAT(message_of<UsageError>([&] { half_loss(length, HalfLoss::skip); }),
               ContainsSubstring("even and at least 2"));
}

TEST_CASE("segments: drawn lengths have the distribution of the definition", "[data][transformer-xl]") {
  constexpr int kSegment = 100, kDraws = 100'000;
  double sum = 0, squares = 0;
  int around_full = 0;
  for (int i = 0; i < kDraws; ++i) {
    const int length = drawn_length(kSegment, 3, static_cast<std::uint64_t>(i));
    REQUIRE((length >= 5 && length <= kSegment + 15));
    if (length < 75) continue;  // five deviations from both bases
    ++around_full;
    sum += length;
    squares += static_cast<double>(length) * length;
  }
  // The standard error of the share is 0.0007; int() takes half a token off the mean.
  CHECK(around_full / double{kDraws} == Approx(0.95).margin(0.004));
  const double mean = sum / around_full;
  CHECK(mean == Approx(99.5).margin(0.1));
  CHECK(std::sqrt(squares / around_full - mean * mean) == Approx(5).margin(0.1));
  // Short ones are clamped from below: N(3, 5) is under 5 for more than half.
  int shortest = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) shortest += drawn_length(3, 3, i) == 5 ? 1 : 0;
  CHECK(shortest > 500);
  CHECK(shortest < 1000);

  const TokenIds ids = count_up(5001);
  const SegmentRule rule{.segment = 20, .extension = 4, .drawn_lengths = true};
  SegmentReader reader(TokenView(ids), 2, rule, 9);
  const Targets first = one_pass(reader), second = one_pass(reader);
  CHECK(first.scored == 2 * 2499);
  CHECK(second.scored == 2 * 2499);
  CHECK(*std::max_element(second.times.begin(), second.times.end()) == 1);
  CHECK(reader.longest_block() == 39);
  SegmentReader other(TokenView(ids), 2, rule, 10);
  CHECK(one_pass(other).scored == first.scored);
  CHECK(drawn_length(20, 9, 0) == drawn_length(20, 9, 0));
  bool differs = false;
  for (std::uint64_t i = 0; i < 20; ++i) differs = differs || drawn_length(20, 9, i) != drawn_length(20, 10, i);
  CHECK(differs);
}

TEST_CASE("segments: resumed at any block the reader goes on bit for bit", "[data][transformer-xl]") {
  const TokenIds ids = count_up(600);
  for (const SegmentRule& rule :
       {SegmentRule{.segment = 7, .extension = 3}, SegmentRule{.segment = 12, .drawn_lengths = true},
        SegmentRule{.segment = 12, .drawn_lengths = true, .latest_half = true}, half_loss(10, HalfLoss::skip),
        half_loss(10, HalfLoss::overlap)}) {
    CAPTURE(text_of(rule));
    SegmentReader reader(TokenView(ids), 3, rule, 77);
    for (int step = 0; step < 60; ++step) {
      const nlohmann::json saved = nlohmann::json::parse(nlohmann::json(reader.state()).dump());
      SegmentReader resumed(TokenView(ids), 3, rule, 1);
      REQUIRE(resumed.accepts(saved.get<ReaderState>()));
      resumed.restore(saved.get<ReaderState>());
      Block block, again;
      for (int ahead = 0; ahead < 3; ++ahead) {
        reader.next(block);
        resumed.next(again);
        REQUIRE((block.inputs == again.inputs && block.targets == again.targets && block.context == again.context));
        REQUIRE((block.zero_caches == again.zero_caches && block.fed_again == again.fed_again));
      }
      REQUIRE(resumed.state() == reader.state());
    }
    CHECK(reader.state().wraps > 0);
  }
}

TEST_CASE("segments: a state of another reader is refused by either", "[data][transformer-xl]") {
  const TokenIds ids = count_up(100);
  SegmentReader reader(TokenView(ids), 2, {.segment = 5, .extension = 3}, 1);
  StreamReader blocks(TokenView(ids), 2, 5, 1);
  const std::vector<BlockReader*> others{&blocks};
  for (BlockReader* other : others) {
    CHECK_FALSE(other->accepts(reader.state()));
    CHECK_FALSE(reader.accepts(other->state()));
    CHECK_THAT(message_of<UsageError>([&] { other->restore(reader.state()); }), ContainsSubstring("extension 3"));
  }
  for (const SegmentRule& rule : {SegmentRule{.segment = 5}, SegmentRule{.segment = 6, .extension = 3},
                                  SegmentRule{.segment = 5, .extension = 3, .drawn_lengths = true}})
    CHECK_FALSE(SegmentReader(TokenView(ids), 2, rule, 1).accepts(reader.state()));
  CHECK_FALSE(SegmentReader(TokenView(ids), 3, {.segment = 5, .extension = 3}, 1).accepts(reader.state()));
  // States of StreamReader keep their form.
  CHECK_FALSE(nlohmann::json(blocks.state()).contains("rule"));
  nlohmann::json damaged = reader.state();
  damaged["rule"] = 3;
  CHECK_THAT(message_of<UsageError>([&] { damaged.get<ReaderState>(); }), ContainsSubstring("'rule', got 3"));
}

TEST_CASE("segments: errors", "[data][transformer-xl]") {
  const TokenIds ids = count_up(19);
  const auto error = [&](int rows, const SegmentRule& rule) {
    return message_of<UsageError>([&] { SegmentReader(TokenView(ids), rows, rule, 1); });
  };
  CHECK_THAT(error(10, {.segment = 4}), ContainsSubstring("each of the 10 rows (batch) needs at least 2 tokens") &&
                                            ContainsSubstring("got 19 tokens in all"));
  CHECK_THAT(error(0, {.segment = 4}), ContainsSubstring("at least 1, got 0"));
  CHECK_THAT(error(1, {.segment = 0}), ContainsSubstring("at least 1 token, got 0"));
  CHECK_THAT(error(1, {.segment = 4, .extension = -1}), ContainsSubstring("at least 0, got -1"));
  CHECK_THAT(error(1, {.segment = 4, .extension = 2, .latest_half = true}), ContainsSubstring("without an extension"));
  CHECK_THAT(error(2, half_loss(16, HalfLoss::skip)), ContainsSubstring("got 9 tokens in each of 2 rows"));
  CHECK_THAT(error(1, {.segment = 1, .latest_half = true}), ContainsSubstring("at least 2 tokens"));
  CHECK(error(9, {.segment = 4}).empty());
  CHECK_THAT(message_of<UsageError>([&] { SegmentEvaluation(TokenView(ids), 4, 0, 10); }),
             ContainsSubstring("10 rows"));
  CHECK_THAT(message_of<UsageError>([&] { SegmentEvaluation(TokenView(ids), 4, -2); }), ContainsSubstring("got -2"));
  CHECK_THAT(message_of<UsageError>([&] { SlidingEvaluation(TokenView(ids), 4, 5); }),
             ContainsSubstring("from 1 to the"));
  CHECK_THAT(message_of<UsageError>([&] { SlidingEvaluation(TokenView(ids.data(), 4, 1), 4, 1); }),
             ContainsSubstring("at least 2 tokens"));
}

TEST_CASE("sliding evaluation: windows grow, slide by one, and score their last token", "[data][transformer-xl]") {
  const TokenIds ids = count_up(7);
  SlidingEvaluation plan(TokenView(ids), 3, 1);
  Block block;
  for (const TokenIds& window :
       {TokenIds{0}, TokenIds{0, 1}, TokenIds{0, 1, 2}, TokenIds{1, 2, 3}, TokenIds{2, 3, 4}, TokenIds{3, 4, 5}}) {
    REQUIRE(plan.next(block));
    CHECK(block.inputs == window);
    CHECK(block.targets == TokenIds{window.back() + 1});
    CHECK(block.context == static_cast<int>(window.size()) - 1);
    CHECK(block.zero_caches);
    CHECK(block.fed_again == 0);
  }
  CHECK_FALSE(plan.next(block));
}

TEST_CASE("sliding evaluation: every token but the first once, whatever the sizes", "[data][transformer-xl]") {
  for (const int total : {2, 3, 10, 41, 64})
    for (const int window : {1, 2, 5, 8, 100})
      for (int stride = 1; stride <= window; stride += stride < 3 ? 1 : 5)
        for (const int rows : {1, 3, 16}) {
          CAPTURE(total, window, stride, rows);
          const TokenIds ids = count_up(total);
          SlidingEvaluation plan(TokenView(ids), window, stride, rows);
          for (int pass = 0; pass < 2; ++pass) {
            const Targets targets = whole(plan, static_cast<std::size_t>(total));
            CHECK(targets.times[0] == 0);
            CHECK(std::count(targets.times.begin(), targets.times.end(), 1) == total - 1);
            plan.begin();
          }
        }
  const TokenIds ids = count_up(64);
  SlidingEvaluation plan(TokenView(ids), 8, 2, 4);
  Block block;
  for (int i = 0; i < 4; ++i) REQUIRE(plan.next(block));
  CHECK((block.rows == 4 && block.length == 8 && block.context == 6 && block.stride == 2));
  CHECK(plan.block_count() == 3 + 7 + 1);
}

}  // namespace engram::harness::segments_test

#include <algorithm>
#include <numeric>

#include "apps/data/blocks/evaluation_plan.hpp"
#include "core/error.hpp"
#include "tests/apps/data/counted_tokens.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::evaluation_plan_test {

using namespace engram::data;

namespace {

struct Tally {
  std::int64_t blocks = 0;
  std::int64_t scored = 0;
  std::vector<int> times;  // how often each token is a scored target
};

/// Runs a pass over tokens 0, 1, 2, ... and checks what holds for all plans.
Tally run(EvaluationPlan& plan, std::int64_t total) {
  Tally tally;
  tally.times.resize(static_cast<std::size_t>(total));
  Block block;
  while (plan.next(block)) {
    const auto count = static_cast<std::size_t>(block.rows) * static_cast<std::size_t>(block.length);
    REQUIRE((block.inputs.size() == count && block.targets.size() == count && block.scored.size() == count));
    std::int64_t scored = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (block.scored[i] == 0) continue;
      ++scored;
      if (block.targets[i] != block.inputs[i] + 1) FAIL("the target is not the token after the input");
      ++tally.times[static_cast<std::size_t>(block.targets[i])];
    }
    REQUIRE(block.scored_count == scored);
    tally.scored += scored;
    ++tally.blocks;
  }
  REQUIRE(tally.blocks == plan.block_count());
  REQUIRE(tally.scored == plan.scored_count());
  return tally;
}

}  // namespace

TEST_CASE("full evaluation: 1025 tokens in blocks of 512 are two blocks, 1024 tokens are one", "[data][T18]") {
  const TokenIds ids = count_up(1025);
  FullEvaluation plan(TokenView(ids), 512, 1);
  const Tally tally = run(plan, 1025);
  CHECK(tally.blocks == 2);
  CHECK(tally.scored == 1024);
  CHECK(tally.times[0] == 0);

  FullEvaluation shorter(TokenView(ids.data(), 4, 1024), 512, 1);
  CHECK(run(shorter, 1024).blocks == 1);
}

TEST_CASE("full evaluation: scored tokens of the published data sets", "[data][T18]") {
  struct Case {
    std::int64_t total;
    int block;
    std::int64_t blocks, scored;
  };
  for (const Case& c :
       {Case{5'000'000, 512, 1220, 4'997'120}, Case{217'646, 256, 106, 217'088}, Case{245'569, 256, 119, 243'712}}) {
    CAPTURE(c.total);
    const std::vector<std::uint8_t> ids(static_cast<std::size_t>(c.total));
    FullEvaluation plan(TokenView(ids.data(), 1, c.total), c.block);
    CHECK(plan.block_count() == c.blocks);
    CHECK(plan.scored_count() == c.scored);
    std::int64_t blocks = 0, scored = 0;
    for (Block block; plan.next(block); ++blocks) scored += block.scored_count;
    CHECK(blocks == c.blocks);
    CHECK(scored == c.scored);
  }
}

TEST_CASE("full evaluation: whole blocks of contiguous rows, from empty caches, each pass alike", "[data]") {
  const TokenIds ids = count_up(26);  // T = 13: two blocks of 5, two tokens of each row over
  FullEvaluation plan(TokenView(ids), 5, 2);
  for (int pass = 0; pass < 2; ++pass) {
    Block block;
    REQUIRE(plan.next(block));
    CHECK(block.inputs == TokenIds{0, 1, 2, 3, 4, 13, 14, 15, 16, 17});
    CHECK(block.zero_caches);
    REQUIRE(plan.next(block));
    CHECK(block.inputs == TokenIds{5, 6, 7, 8, 9, 18, 19, 20, 21, 22});
    CHECK(block.targets == TokenIds{6, 7, 8, 9, 10, 19, 20, 21, 22, 23});
    CHECK_FALSE(block.zero_caches);
    CHECK_FALSE(plan.next(block));
    CHECK_FALSE(plan.next(block));
    plan.begin();
  }
}

TEST_CASE("full evaluation: T <= M is an error", "[data]") {
  const TokenIds ids = count_up(80);
  CHECK_NOTHROW(FullEvaluation(TokenView(ids), 9));
  const std::string message = message_of<UsageError>([&] { FullEvaluation plan(TokenView(ids), 10); });
  CHECK_THAT(message,
             ContainsSubstring("full evaluation: batch * (block + 1) = 8 * 11 = 88 tokens are needed, got 80"));
  CHECK_THAT(
      message,
      ContainsSubstring("the largest workable batch is 7 (--batch), the longest block for a batch of 8 is 9 (--block)\n"
                        "  exact evaluation (engram evaluate --exact) scores"));
  CHECK_THROWS_AS(FullEvaluation(TokenView(ids), 0), UsageError);
  CHECK_THROWS_AS(FullEvaluation(TokenView(ids), 4, 0), UsageError);
}

TEST_CASE("exact evaluation: one row scores every token but the first once, in order", "[data]") {
  for (std::int32_t total = 2; total < 40; ++total)
    for (const int block_length : {1, 2, 5, 16, 100}) {
      CAPTURE(total, block_length);
      const TokenIds ids = count_up(total);
      ExactEvaluation plan{TokenView(ids), block_length};
      Block block;
      std::int32_t expected = 0;
      while (plan.next(block)) {
        REQUIRE(block.zero_caches == (expected == 0));
        REQUIRE(block.length == std::min(block_length, total - 1 - expected));
        for (const std::int32_t input : block.inputs) REQUIRE(input == expected++);
      }
      REQUIRE(expected == total - 1);
      plan.begin();
      const Tally tally = run(plan, total);
      CHECK(tally.scored == total - 1);
      CHECK(tally.times[0] == 0);
      CHECK(std::count(tally.times.begin() + 1, tally.times.end(), 1) == total - 1);
    }
}

TEST_CASE("exact evaluation: rows with carry-over score every token once, after enough context", "[data]") {
  for (const std::int32_t total : {20, 37, 64, 101})
    for (const int rows : {2, 3, 8})
      for (const int carry_over : {1, 4, 15})
        for (const int block_length : {1, 6, 64}) {
          CAPTURE(total, rows, carry_over, block_length);
          const TokenIds ids = count_up(total);
          ExactEvaluation plan(TokenView(ids), block_length, rows, carry_over);
          const Tally tally = run(plan, total);
          REQUIRE(tally.times[0] == 0);
          REQUIRE(std::count(tally.times.begin() + 1, tally.times.end(), 1) == total - 1);

          // Each row reads on without a gap, and what it scores has `carry_over` inputs before it or the whole text.
          plan.begin();
          std::vector<TokenIds> read(static_cast<std::size_t>(rows));
          for (Block block; plan.next(block);)
            for (int row = 0; row < rows; ++row)
              for (int i = 0; i < block.length; ++i) {
                const auto index = static_cast<std::size_t>(row * block.length + i);
                TokenIds& inputs = read[static_cast<std::size_t>(row)];
                if (block.scored[index] != 0) {
                  REQUIRE((inputs.empty() || inputs.back() + 1 == block.inputs[index]));
                  REQUIRE((row == 0 ? block.inputs[index] == static_cast<std::int32_t>(inputs.size())
                                    : static_cast<int>(inputs.size()) >= carry_over));
                }
                inputs.push_back(block.inputs[index]);
              }
        }
}

TEST_CASE("exact evaluation: a worked example of three rows", "[data]") {
  // 9 targets, carry-over 2: rows of ceil((9 + 2 * 2) / 3) = 5 inputs, starting at 0, 3, 6.
  const TokenIds ids = count_up(10);
  ExactEvaluation plan(TokenView(ids), 3, 3, 2);
  Block block;
  REQUIRE(plan.next(block));
  CHECK(block.inputs == TokenIds{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(block.targets == TokenIds{1, 2, 3, 4, 5, 6, 7, 8, 9});
  CHECK(block.scored == std::vector<std::uint8_t>{1, 1, 1, 0, 0, 1, 0, 0, 1});
  REQUIRE(plan.next(block));
  CHECK(block.length == 2);
  CHECK(block.inputs == TokenIds{3, 4, 6, 7, 0, 0});
  CHECK(block.targets == TokenIds{4, 5, 7, 8, 0, 0});
  CHECK(block.scored == std::vector<std::uint8_t>{1, 1, 1, 1, 0, 0});
  CHECK_FALSE(plan.next(block));
}

TEST_CASE("exact evaluation: errors", "[data]") {
  const TokenIds ids = count_up(10);
  const auto error_of = [&](std::int64_t total, int block, int rows, std::int64_t carry_over) {
    return message_of<UsageError>(
        [&] { ExactEvaluation plan(TokenView(ids.data(), 4, total), block, rows, carry_over); });
  };
  CHECK(error_of(10, 3, 2, 8).empty());
  CHECK_THAT(error_of(10, 3, 2, 9), ContainsSubstring("with 2 rows the carry-over must be from 1 to 8 tokens") &&
                                        ContainsSubstring("got 9") && ContainsSubstring("layers * span"));
  CHECK_THAT(error_of(10, 3, 2, 0), ContainsSubstring("got 0"));
  CHECK_THAT(error_of(1, 3, 1, 0), ContainsSubstring("at least 2 tokens are needed, an input and a target, got 1"));
  CHECK_THAT(error_of(10, 0, 1, 0), ContainsSubstring("the block length must be at least 1, got 0"));
  CHECK_THAT(error_of(10, 3, 0, 0), ContainsSubstring("the number of rows must be at least 1, got 0"));
}

TEST_CASE("short validation: goes on where it stopped, wraps as training does", "[data]") {
  const TokenIds ids = count_up(42);  // T = 21, M = 4: a pass over all of it would be 6 blocks
  ShortValidation plan(TokenView(ids), 4, 2, 30, 7);
  StreamReader reader(TokenView(ids), 2, 4, 7);
  CHECK(plan.block_count() == 3);
  CHECK(plan.scored_count() == 24);
  for (int pass = 0; pass < 10; ++pass) {
    Block got, expected;
    for (int i = 0; i < 3; ++i) {
      REQUIRE(plan.next(got));
      reader.next(expected);
      CHECK(got.inputs == expected.inputs);
      CHECK(got.targets == expected.targets);
      CHECK(got.zero_caches == expected.zero_caches);
    }
    CHECK_FALSE(plan.next(got));
    if (pass == 4) {
      ShortValidation resumed(TokenView(ids), 4, 2, 30, 0);
      REQUIRE(resumed.accepts(plan.state()));
      resumed.restore(plan.state());
      plan = std::move(resumed);
    } else {
      plan.begin();
    }
  }
  CHECK(plan.state().wraps > 3);
}

TEST_CASE("short validation: min(steps / 10, ceil(T / M)) blocks, at least one", "[data]") {
  const TokenIds ids = count_up(2 * 21);
  const auto blocks = [&](int block, std::int64_t steps) {
    return ShortValidation(TokenView(ids), block, 2, steps, 1).block_count();
  };
  CHECK(blocks(4, 1000) == 6);  // ceil(21 / 4)
  CHECK(blocks(7, 1000) == 3);  // ceil(21 / 7)
  CHECK(blocks(20, 1000) == 2);
  CHECK(blocks(4, 59) == 5);
  CHECK(blocks(4, 9) == 1);
  CHECK_THROWS_AS(blocks(21, 1000), UsageError);
  const std::vector<std::uint8_t> large(5'000'000);
  CHECK(ShortValidation(TokenView(large.data(), 1, 5'000'000), 512, 64, 1000, 1).block_count() == 100);
}

}  // namespace engram::harness::evaluation_plan_test

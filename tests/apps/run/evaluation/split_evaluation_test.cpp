/// Evaluations as users ask for them: how far they are, what they cost, and windows and blocks that are too long.

#include "apps/run/evaluation/split_evaluation.hpp"

#include <vector>

#include "apps/data/blocks/segment_evaluation.hpp"
#include "core/error.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/studies/context/context_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::split_evaluation_test {
namespace {

std::string refusal(const std::string& run, const SplitEvaluationOptions& way) {
  Runtime runtime({}, 1);
  TrainedModel trained(context_bench().run(run), CheckpointKind::newest, runtime);
  const data::DataSet set = context_bench().set();
  return message_of<UsageError>([&] { evaluate_split(trained, set.split("valid"), way); });
}

}  // namespace

TEST_CASE("evaluation: whoever watches hears of every block, up to the last before the end") {
  const data::DataSet set = context_bench().set();
  const data::TokenView tokens(set.split("valid").data(), set.split("valid").width(), 101);
  std::vector<std::int64_t> heard;
  WatchedPlan plan(std::make_unique<data::SegmentEvaluation>(tokens, 30),
                   [&heard](std::int64_t scored, std::int64_t all) {
                     CHECK(all == 100);
                     heard.push_back(scored);
                   });
  for (int pass = 0; pass < 2; ++pass) {
    heard.clear();
    plan.begin();
    data::Block block;
    int blocks = 0;
    while (plan.next(block)) ++blocks;
    CHECK(blocks == 4);
    CHECK(heard == std::vector<std::int64_t>{30, 60, 90, 100});
  }
  CHECK(plan.block_count() == 4);
  CHECK(plan.longest_block() == 30);

  WatchedPlan some(std::make_unique<data::SegmentEvaluation>(tokens, 30), {}, 3);
  for (int pass = 0; pass < 2; ++pass) {
    some.begin();
    data::Block block;
    int blocks = 0;
    while (some.next(block)) ++blocks;
    CHECK(blocks == 3);
  }

  Runtime runtime({}, 1);
  TrainedModel trained(context_bench().run("xl"), CheckpointKind::newest, runtime);
  SplitEvaluationOptions way;
  std::int64_t last = 0;
  way.watch = [&last](std::int64_t scored, std::int64_t) { last = scored; };
  // Not in the comparison: nobody says which of its sides is read first.
  const std::int64_t scored = evaluate_split(trained, set.split("valid"), way).result.scored;
  CHECK(scored == last);
}

TEST_CASE("evaluation: a window is at most as long as the split, and long ones with short strides are told") {
  const std::int64_t tokens = context_bench().set().split("valid").size();
  CHECK_THAT(
      refusal("windows", {.window = static_cast<int>(tokens + 1), .stride = 500}),
      ContainsSubstring(text("--window must be at most the ", tokens, " tokens of the split, got ", tokens + 1)));
  CHECK(refusal("windows", {.window = static_cast<int>(tokens), .stride = static_cast<int>(tokens)}).empty());
  CHECK(costly_reading({.window = 512, .stride = 4}) == 128);
  CHECK(costly_reading({.window = 512, .stride = 8}) == 0);
  CHECK(costly_reading({.window = 512, .apart = true}) == 0);
  CHECK(costly_reading({}) == 0);

  const Arguments windows = study("evaluate", {"windows"}, {"--window", "100", "--stride"});
  const auto warned = [&](const char* stride) {
    Arguments arguments = windows;
    arguments.push_back(stride);
    const ProcessResult result = run_engram(arguments);
    CHECK(result.exit_code == 0);
    return result.err;
  };
  CHECK_THAT(warned("1"), ContainsSubstring("--window 100 with --stride 1 reads 100 tokens for each that is scored"));
  CHECK(warned("50").empty());
}

TEST_CASE("evaluation: what is refused comes without advice, and a wrong word with the right ones") {
  // The table of positions has 15 rows.
  const std::string refused = error_of(study("evaluate", {"learned"}, {"--window", "200", "--stride", "1"}), 2);
  CHECK_THAT(refused, StartsWith("engram: error: evaluate: --window must be at most 15 tokens"));
  CHECK_THAT(
      error_of(study("evaluate", {"xl"}, {"--same-length", "nonsense"}), 2),
      StartsWith("engram: error: --same-length must be last_memory, last_memory_plus_1 or all, got 'nonsense'\n"));
}

TEST_CASE("evaluation: what a table of positions is too short for is said in the user's numbers") {
  // Of 15 rows; the run has blocks of 10.
  CHECK_THAT(refusal("learned", {.window = 16, .stride = 4}),
             ContainsSubstring("--window must be at most 15 tokens, for the model's table of positions has 15 rows "
                               "(model.position_rows), got 16"));
  CHECK_THAT(refusal("learned", {.window = 17, .apart = true}),
             ContainsSubstring("--window must be at most 16 tokens") && ContainsSubstring("got 17"));
  CHECK_THAT(refusal("learned", {.block = 16}),
             ContainsSubstring("--block must be at most 15 tokens, for") && ContainsSubstring("got 16"));
  CHECK(refusal("learned", {.window = 15, .stride = 5}).empty());
  CHECK(refusal("learned", {.window = 16, .apart = true}).empty());
  CHECK(refusal("learned", {.block = 15}).empty());
  CHECK(refusal("windows", {.window = 40, .stride = 20}).empty());
}

}  // namespace engram::harness::split_evaluation_test

/// A sweep whose runs are dealt over ranks.

#include <algorithm>
#include <mutex>

#include "apps/studies/sweeps/rank_results.hpp"
#include "apps/terminal/signals.hpp"
#include "tests/apps/studies/sweeps/sweep_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::rank_sweep_test {
namespace {

using namespace harness;

/// Without what depends on the clock: the columns of tokens and words per second.
std::string without_speed(const std::string& csv) {
  std::string kept;
  std::size_t column = 0;
  std::vector<std::size_t> speeds;
  std::string cell;
  bool header = true;
  for (const char byte : csv) {
    if (byte != ',' && byte != '\n') {
      cell += byte;
      continue;
    }
    if (header && cell.ends_with("_per_second")) speeds.push_back(column);
    if (header || std::ranges::find(speeds, column) == speeds.end()) kept += cell;
    kept += byte;
    cell.clear();
    ++column;
    if (byte == '\n') column = 0, header = false;
  }
  return kept;
}

TEST_CASE("sweep: over ranks it has the runs and the table that one rank has", "[sweep][ranks][night]") {
  const auto options = [](std::string_view out) {
    SweepOptions made = bench().options(out, {"model.slots=2,3,4"});
    made.overrides = {"schedule.steps=3", "schedule.warmup=1"};
    return made;
  };
  const SweepOptions alone = options("alone"), dealt = options("dealt");
  run_all(alone);
  run_ranks(2, [&](Communicator& ranks) {
    const data::DataSet data = data::DataSet::open(dealt.data);
    const std::vector<RunResult> results = run_sweep(dealt, data, prepare_runs(dealt, data), never(), ranks);
    for (const RunResult& result : results)
      if (result.outcome != RunOutcome::done) throw Error("every rank must know that all runs are done");
  });
  for (const char* run : {"slots-2", "slots-3", "slots-4"}) {
    CHECK_FALSE(checkpoint(alone.out / run).empty());
    CHECK(checkpoint(alone.out / run) == checkpoint(dealt.out / run));
  }
  const std::string table = without_speed(get_file(alone.out / "sweep.csv"));
  CHECK_THAT(table, ContainsSubstring("slots-4"));
  CHECK(without_speed(get_file(dealt.out / "sweep.csv")) == table);
}

TEST_CASE("sweep: all ranks end when one is interrupted, and the others' runs are complete", "[sweep][ranks]") {
  SweepOptions options = bench().options("interrupted", {"model.slots=2,3"});
  options.overrides = {"schedule.steps=4", "schedule.warmup=1"};
  std::mutex mutex;
  std::vector<std::string> messages;
  run_ranks(2, [&](Communicator& ranks) {
    const data::DataSet data = data::DataSet::open(options.data);
    const std::function<bool()> stop = ranks.rank() == 1 ? after_steps(2) : never();
    const std::string message =
        message_of<Interrupted>([&] { run_sweep(options, data, prepare_runs(options, data), stop, ranks); });
    const std::lock_guard lock(mutex);
    messages.push_back(message);
  });
  REQUIRE(messages.size() == 2);
  CHECK(messages[0] == messages[1]);
  CHECK_THAT(messages[0], StartsWith("run 'slots-3': interrupted at step 2, saved"));
  const std::vector<SweepRun> runs = prepared(options);
  CHECK(runs[0].state.kind == RunState::Kind::finished);
  CHECK(runs[1].state.kind == RunState::Kind::unfinished);
}

TEST_CASE("sweep: results cross to other ranks exactly", "[sweep][ranks]") {
  RunResult result{.outcome = RunOutcome::diverged, .reason = "a \"reason\"\nof two lines", .step = 7};
  result.tokens_per_second = 1.0 / 3;
  result.inference_tokens = 1.0 / 7;
  result.inference_words = 1.0 / 9;
  result.best_step = 5;
  result.valid = std::numeric_limits<double>::infinity();
  result.best_test = 0.1;
  result.memories = {{.layer = 2, .usage = 0.7, .top_usage = 1e-300, .kl = 3}};
  const RunResult same = result_of_text(text_of_result(result));
  CHECK(same.outcome == result.outcome);
  CHECK(same.reason == result.reason);
  CHECK(same.step == 7);
  CHECK(same.tokens_per_second == result.tokens_per_second);
  CHECK(same.inference_tokens == result.inference_tokens);
  CHECK(same.inference_words == result.inference_words);
  CHECK(same.best_step == result.best_step);
  CHECK(same.valid == result.valid);
  CHECK_FALSE(same.best_valid.has_value());
  CHECK(same.best_test == 0.1);
  REQUIRE(same.memories.size() == 1);
  CHECK(same.memories[0].top_usage == 1e-300);
  CHECK_THROWS_AS(result_of_text("none"), Error);
}

}  // namespace
}  // namespace engram::rank_sweep_test

/// Runs of several ranks, threads of this process, that fail or go on with fewer: all come to one end, and to one
/// beginning.

#include <functional>
#include <string>
#include <vector>

#include "apps/run/training/divergence.hpp"
#include "apps/run/training/late_rows.hpp"
#include "apps/terminal/signals.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::harness::rank_failure_test {
namespace {

/// `stop` makes what each of them asks.
void train(const TrainingRunOptions& options, int count, const std::function<std::function<bool()>()>& stop = never) {
  run_ranks(count, [&](Communicator& ranks) {
    TrainingRunOptions own = options;
    own.ranks = &ranks;
    run_training(own, stop());
  });
}

/// What each rank's run ends with.
std::vector<std::string> ends_of(const TrainingRunOptions& options, int count) {
  std::vector<std::string> ends(static_cast<std::size_t>(count));
  run_ranks(count, [&](Communicator& ranks) {
    TrainingRunOptions own = options;
    own.ranks = &ranks;
    std::string& end = ends[static_cast<std::size_t>(ranks.rank())];
    try {
      run_training(own, never());
    } catch (const Diverged& error) {
      end = text("diverged: ", error.what());
    } catch (const std::exception& error) {
      end = error.what();
    }
    ranks.any(true);  // nobody has gone before the last one has come
  });
  return ends;
}

TEST_CASE("ranks: a checkpoint that is refused for its numbers ends all with what one rank says", "[ranks]") {
  const RunFolder folder;
  const auto options_of = [&](int count, const char* kind) {
    TrainingRunOptions options = run_options(folder, text(kind, " ", count));
    // Weights beyond a million, and, of what ranks share, squares of gradients beyond all numbers.
    options.overrides = {"schedule.rate=1e7", "schedule.warmup=0", "training.checkpoint_every=1",
                         "training.validate_every=1000", text("optimizer.kind=", kind)};
    return options;
  };
  for (const char* const kind : {"adagrad", "sgd"}) {
    const std::string alone = ends_of(options_of(1, kind), 1)[0];
    CHECK_THAT(alone, StartsWith("diverged: training: after step ") &&
                          ContainsSubstring("save_checkpoint: every number must be finite and at most 1e+06, got ") &&
                          ContainsSubstring("there was no checkpoint yet"));
    CHECK(ends_of(options_of(2, kind), 2) == std::vector<std::string>(2, alone));
    CHECK_FALSE(std::filesystem::exists(checkpoint_path(options_of(2, kind).out, CheckpointKind::newest)));
  }
}

TEST_CASE("ranks: a run that diverges says that its last checkpoint is there", "[ranks]") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  options.overrides = {"schedule.steps=4", "training.checkpoint_every=2"};
  train(options, 2);
  options.resume = true;
  options.config.clear();
  options.overrides = {"schedule.steps=8", "schedule.rate=1e7", "schedule.warmup=0"};
  for (const std::string& end : ends_of(options, 2))
    CHECK_THAT(end, StartsWith("diverged: ") && ContainsSubstring("the last good checkpoint is kept in '"));
}

TEST_CASE("ranks: with fewer of them and the configuration of the beginning a run keeps its split", "[ranks]") {
  const RunFolder folder;
  std::string without_split = small_config();
  without_split.erase(without_split.find("split = 2\n"), 10);
  const auto options_of = [&](const char* out) {
    TrainingRunOptions options = run_options(folder, out);
    options.config = put_file(folder / "no_split.toml", without_split);
    options.steps = 8;
    return options;
  };
  TrainingRunOptions whole = options_of("whole");
  whole.overrides = {"training.split=4"};
  run_training(whole, never());
  TrainingRunOptions parts = options_of("parts");
  CHECK_THROWS_AS(train(parts, 4, [] { return after_steps(3); }), Interrupted);
  parts.resume = true;
  train(parts, 2);
  CHECK(newest_checkpoint(parts) == newest_checkpoint(whole));
  // What is asked for is another thing, and so is a batch that cannot be split so.
  TrainingRunOptions other = parts;
  other.steps = 9;
  other.overrides = {"training.split=2"};
  run_training(other, never());
  CHECK(get_file(other.out / "config.toml").find("split = 2\n") != std::string::npos);
  other.steps = 10;
  other.overrides = {"training.batch=3", "training.split=3"};
  run_training(other, never());
  other.steps = 11;
  other.overrides = {"training.batch=2"};
  run_training(other, never());
  CHECK(get_file(other.out / "config.toml").find("split = 1\n") != std::string::npos);
}

TEST_CASE("ranks: the rows that wait beside a checkpoint are part of what all must have alike", "[ranks]") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  options.config = put_file(folder / "memory.toml", R"([model]
family = "product_key"
layers = 2
width = 16
heads = 2
position_rows = 24
[product_key]
count = 1
subkeys = 6
heads = 2
selected = 4
query_width = 8
[optimizer]
kind = "adam"
table_mode = "deferred"
table_epsilon = 0
[schedule]
rate = 0.01
steps = 12
[training]
batch = 4
block = 20
)");
  CHECK_THROWS_AS(run_training(options, after_steps(4)), Interrupted);
  const std::filesystem::path checkpoint = checkpoint_path(options.out, CheckpointKind::newest);
  const std::string rows = late_rows_beside(checkpoint, 4);
  CHECK(rows == CheckpointFile(checkpoint.parent_path() / "late-rows.safetensors").checksum());
  CHECK_THAT(rows, StartsWith("crc32:"));
  CHECK(late_rows_beside(checkpoint, 5) == "none");
  remove_late_rows(checkpoint);
  CHECK(late_rows_beside(checkpoint, 4) == "none");
}

}  // namespace
}  // namespace engram::harness::rank_failure_test

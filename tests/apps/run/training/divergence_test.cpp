/// What a training that goes wrong must not do: replace what is good, or end as if all were well.

#include "apps/run/training/divergence.hpp"

#include <limits>
#include <mutex>

#include "apps/run/training/trainer.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::harness::divergence_test {
namespace {

TrainingRunOptions plain_run(const RunFolder& folder, const std::string& out) {
  TrainingRunOptions options = run_options(folder, out);
  options.overrides = {"model.span=fixed",   "optimizer.kind=adam", "optimizer.clip=0",
                       "schedule.rate=1e-3", "schedule.warmup=0",   "training.checkpoint_every=1000"};
  return options;
}

}  // namespace

TEST_CASE("a loss that stays above one and a half times its best for 1000 steps is a divergence") {
  DivergenceWatch watch(30);
  for (int k = 0; k < 500; ++k) watch.add(2.0 - k * 0.002);
  CHECK_FALSE(watch.suspicious());
  CHECK(watch.best() == Approx(1.2).margin(0.05));
  int steps = 0;
  while (!watch.diverged() && steps < 3000) {
    watch.add(3);
    ++steps;
  }
  CHECK(steps > 1000);
  CHECK(steps < 1200);

  DivergenceWatch spiky(30);
  for (int k = 0; k < 5000; ++k) spiky.add(k % 500 < 300 ? 1 : 3);
  CHECK_FALSE(spiky.diverged());

  DivergenceWatch by_heart(30);
  for (int k = 0; k < 5000; ++k) by_heart.add(k < 2000 ? 1e-5 : 0.3);
  CHECK_FALSE(by_heart.suspicious());
  for (int k = 0; k < 1500; ++k) by_heart.add(1);
  CHECK(by_heart.diverged());

  DivergenceWatch copy(30);
  copy.restore(watch.state());
  CHECK(copy.diverged());
  CHECK(copy.mean() == watch.mean());
  CHECK_THROWS_AS(copy.restore(spiky.state().at("sum")), UsageError);
}

TEST_CASE("a loss is lost above its best and a guess, and hopeless at ten times them") {
  DivergenceWatch watch(30);  // a guess costs 3.4 nats
  for (int k = 0; k < 200; ++k) watch.add(1.0);
  for (int k = 0; k < 200; ++k) watch.add(3.3);  // as after a change of text
  CHECK(watch.suspicious());
  CHECK_FALSE(watch.lost());
  for (int k = 0; k < 200; ++k) watch.add(8.0);
  CHECK(watch.lost());
  CHECK_FALSE(watch.is_hopeless(30));  // overfitted
  CHECK(watch.is_hopeless(40));
  CHECK(watch.is_hopeless(std::numeric_limits<double>::infinity()));
  CHECK(watch.is_hopeless(std::numeric_limits<double>::quiet_NaN()));
}

TEST_CASE("a run whose weights are not finite replaces no checkpoint and does not end as done") {
  const RunFolder folder;
  TrainingRunOptions options = plain_run(folder, "run");
  CHECK_THROWS_AS(run_training(options, after_steps(3)), Interrupted);
  const std::string good = newest_checkpoint(options);
  options.resume = true;
  const auto and_with = [&](const std::vector<std::string>& more) {
    options.overrides.insert(options.overrides.end(), more.begin(), more.end());
  };
  and_with({"schedule.rate=1e38", "optimizer.weight_decay=100"});  // the next update is infinite
  SECTION("the step before a validation and a save spoils them") {
    // The loss of step 4 is that of good weights.
    and_with({"schedule.steps=4"});
    CHECK_THAT(message_of<Diverged>([&] { run_training(options, never()); }),
               ContainsSubstring("validation loss of step 4") && ContainsSubstring("last good checkpoint"));
  }
  SECTION("a save without a validation before it") {
    and_with({"training.checkpoint_every=4", "training.validate_every=1000"});
    CHECK_THAT(
        message_of<Diverged>([&] { run_training(options, never()); }),
        ContainsSubstring("after step 4") && ContainsSubstring("finite") && ContainsSubstring("last good checkpoint"));
  }
  SECTION("Ctrl-C") {
    and_with({"training.validate_every=1000"});
    CHECK_THAT(message_of<Diverged>([&] { run_training(options, after_steps(1)); }),
               ContainsSubstring("last good checkpoint"));
  }
  SECTION("weights that are finite and absurd, before their loss is seen") {
    and_with({"training.validate_every=1000", "optimizer.weight_decay=0", "schedule.rate=1e9"});
    CHECK_THAT(message_of<Diverged>([&] { run_training(options, after_steps(1)); }),
               ContainsSubstring("at most 1e+06") && ContainsSubstring("last good checkpoint"));
  }
  CHECK(newest_checkpoint(options) == good);
  CHECK_THAT(get_file(options.out / "metrics.jsonl"), ContainsSubstring("\"diverged\""));
}

TEST_CASE("a first step that spoils all leaves no checkpoint and says so") {
  const RunFolder folder;
  TrainingRunOptions options = plain_run(folder, "run");
  options.overrides.insert(options.overrides.end(),
                           {"schedule.rate=1e38", "optimizer.weight_decay=100", "schedule.steps=1"});
  CHECK_THAT(message_of<Diverged>([&] { run_training(options, never()); }),
             ContainsSubstring("there was no checkpoint yet"));
  CHECK_FALSE(std::filesystem::exists(checkpoint_path(options.out, CheckpointKind::newest)));
  CHECK_FALSE(std::filesystem::exists(checkpoint_path(options.out, CheckpointKind::best)));
}

TEST_CASE("ranks: weights that rank 0 may not save are a divergence on all, which is logged", "[ranks]") {
  const RunFolder folder;
  TrainingRunOptions options = plain_run(folder, "run");
  options.overrides.insert(options.overrides.end(), {"schedule.rate=1e38", "optimizer.weight_decay=100",
                                                     "training.checkpoint_every=1", "training.validate_every=1000"});
  std::mutex mutex;
  std::vector<std::string> told;
  run_ranks(2, [&](Communicator& ranks) {
    TrainingRunOptions own = options;
    own.ranks = &ranks;
    const std::string message = message_of<Diverged>([&] { run_training(own, never()); });
    const std::lock_guard lock(mutex);
    told.push_back(message);
  });
  REQUIRE(told.size() == 2);
  CHECK_THAT(told[0], ContainsSubstring("after step 1") && ContainsSubstring("there was no checkpoint yet"));
  CHECK(told[1] == told[0]);
  CHECK_THAT(get_file(options.out / "metrics.jsonl"), ContainsSubstring("\"diverged\""));
}

TEST_CASE("a short run whose loss is a thousand times that of a guess has diverged") {
  const RunFolder folder;
  TrainingRunOptions options = plain_run(folder, "run");
  options.overrides.insert(options.overrides.end(), {"schedule.rate=10", "schedule.steps=12"});
  CHECK_THAT(message_of<Diverged>([&] { run_training(options, never()); }),
             ContainsSubstring("must") && ContainsSubstring("there was no checkpoint yet"));
  CHECK(get_file(options.out / "metrics.jsonl").find("\"best\":true") == std::string::npos);
}

TEST_CASE("a run that diverges after its best weights were kept, and before a checkpoint, says where they are") {
  const RunFolder folder;
  TrainingRunOptions options = plain_run(folder, "run");
  // The rate is the number of the step: the first ones improve the model, those that follow spoil it.
  options.overrides.insert(options.overrides.end(),
                           {"schedule.rate=10000", "schedule.warmup=10000", "schedule.steps=30",
                            "training.validate_every=1", "optimizer.kind=sgd"});
  CHECK_THAT(message_of<Diverged>([&] { run_training(options, never()); }),
             ContainsSubstring("no checkpoint yet, but --best reads the weights of step "));
  CHECK_FALSE(std::filesystem::exists(checkpoint_path(options.out, CheckpointKind::newest)));
  CHECK(std::filesystem::exists(checkpoint_path(options.out, CheckpointKind::best)));
}

TEST_CASE("other data begin a new best loss") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  CHECK_THROWS_AS(run_training(options, after_steps(5)), Interrupted);
  const auto best = [&] {
    const CheckpointFile file(checkpoint_path(options.out, CheckpointKind::newest));
    return nlohmann::json::parse(file.metadata().find("engram.run")->second)
        .at("divergence")
        .at("weight")
        .get<double>();
  };
  CHECK(best() > 4.5);
  const RunFolder other(5900);
  options.resume = true;
  options.data = other.data();
  CHECK_THROWS_AS(run_training(options, after_steps(1)), Interrupted);
  CHECK(best() == 1);
}

}  // namespace engram::harness::divergence_test

/// A whole small run in its folder: what it leaves there, what it says, and what it does when something goes wrong.

#include "apps/run/training/training_run.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "core/files/json.hpp"

#include <sys/stat.h>

#include <map>
#include <sstream>

#include "apps/run/config/config_review.hpp"
#include "apps/run/folder/metrics_log.hpp"
#include "apps/run/training/progress.hpp"
#include "apps/run/training/trainer.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "nn/checkpoint.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::training_run_test {
namespace {

TEST_CASE("a run leaves its configuration, its metrics and two checkpoints") {
  const RunFolder folder;
  const TrainingRunOptions options = run_options(folder, "a/b/run");
  const TrainingRunResult result = run_training(options, never());
  CHECK(result.step == 24);
  REQUIRE(result.best_nll);
  CHECK(*result.best_nll < 2.6);  // ln of the vocabulary of 15

  const RunConfig resolved = load_run_config(options.out / "config.toml");
  const auto differences = config_differences(load_run_config(options.config), resolved);
  REQUIRE(differences.size() == 1);
  CHECK(differences[0].key == "model.vocabulary");

  std::istringstream lines(get_file(options.out / "metrics.jsonl"));
  std::map<std::string, std::vector<std::int64_t>> steps;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    steps[object["event"]].push_back(object["step"]);
    if (object["event"] == "train") {
      for (const char* member : {"nll", "bpc", "learning_rate", "tokens_per_second", "span_mean", "gradient_norm"})
        CHECK(object[member].get<double>() > 0);
      CHECK(object["bpc"].get<double>() == Approx(object["nll"].get<double>() / 0.6931471805599453));
    }
  }
  CHECK(steps["start"] == std::vector<std::int64_t>{0});
  CHECK(steps["train"] == std::vector<std::int64_t>{5, 10, 15, 20, 24});
  CHECK(steps["valid_short"] == std::vector<std::int64_t>{7, 14, 21, 24});
  CHECK(steps["end"] == std::vector<std::int64_t>{24});
  CHECK(CheckpointFile(checkpoint_path(options.out, CheckpointKind::newest)).has_group("state/train.1.1"));
}

TEST_CASE("fewer steps than the warm-up of the file are a trial, whose warm-up is shorter; also when it goes on") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "trial");
  options.overrides = {"schedule.decay=cosine"};
  const auto warmup = [&] { return load_run_config(options.out / "config.toml").schedule.warmup; };
  options.steps = 3;
  CHECK(run_training(options, never()).step == 3);
  CHECK(warmup() == 0);
  options.resume = true;
  options.steps = 5;  // more than the file's
  CHECK(run_training(options, never()).step == 5);
  CHECK(warmup() == 4);
  // What is asked for is not changed.
  options = run_options(folder, "asked");
  options.overrides = {"schedule.decay=cosine", "schedule.warmup=3"};
  options.steps = 3;
  CHECK_THAT(message_of<UsageError>([&] { run_training(options, never()); }),
             ContainsSubstring("got steps 3 and warmup 3"));
}

TEST_CASE("the same run gives the same bytes") {
  const RunFolder folder;
  std::string first;
  for (const char* name : {"one", "two"}) {
    const TrainingRunOptions options = run_options(folder, name);
    run_training(options, never());
    const std::string bytes = get_file(checkpoint_path(options.out, CheckpointKind::newest));
    if (first.empty()) first = bytes;
    CHECK(bytes == first);
  }
  TrainingRunOptions other = run_options(folder, "three");
  other.overrides = {"training.seed=12"};
  run_training(other, never());
  CHECK(get_file(checkpoint_path(other.out, CheckpointKind::newest)) != first);
}

TEST_CASE("products in bf16 are part of the configuration and stay on when a run is continued") {
  const RunFolder folder;
  const auto loss_of = [&](const char* name, const std::vector<std::string>& overrides) {
    TrainingRunOptions options = run_options(folder, name);
    options.overrides = overrides;
    CHECK_THROWS_AS(run_training(options, after_steps(12)), Error);
    options.overrides.clear();
    if (name[0] == 'b') options.config.clear();  // the run's own, or the file that it was started with
    options.resume = true;
    const double loss = *run_training(options, never()).best_nll;
    CHECK(load_run_config(options.out / "config.toml").training.products ==
          (overrides.empty() ? ProductPrecision::f32 : ProductPrecision::bf16));
    return loss;
  };
  const double f32 = loss_of("f32", {}), bf16 = loss_of("bf16", {"training.products=bf16"});
  CHECK(loss_of("again", {"training.products=bf16"}) == bf16);
  CHECK(bf16 != f32);
  CHECK(bf16 == Approx(f32).epsilon(0.02));
  TrainingRunOptions twice = run_options(folder, "f64");
  twice.dtype = DType::f64;
  twice.overrides = {"training.products=bf16"};
  CHECK_THAT(message_of<UsageError>([&] { run_training(twice, never()); }), ContainsSubstring("training.products"));
}

TEST_CASE("products that the file or --set of a continued run asks for are taken, however they are written") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  CHECK_THROWS_AS(run_training(options, after_steps(4)), Interrupted);
  options.resume = true;
  const auto goes_on_with = [&](const std::string& config, const std::vector<std::string>& overrides) {
    options.config = put_file(folder / "config.toml", config);
    options.overrides = overrides;
    CHECK_THROWS_AS(run_training(options, after_steps(2)), Interrupted);
    return load_run_config(options.out / "config.toml").training.products;
  };
  CHECK(goes_on_with(small_config(), {"training.products = bf16"}) == ProductPrecision::bf16);
  CHECK(goes_on_with(small_config(), {}) == ProductPrecision::bf16);  // the run's
  CHECK(goes_on_with(small_config() + "products = \"f32\"\n", {}) == ProductPrecision::f32);
  CHECK(goes_on_with(small_config() + "products = \"bf16\"\n", {}) == ProductPrecision::bf16);
  // No CPU has kernels for bf16 activations, and says so where they are asked for.
  options.overrides = {"training.activations = bf16"};
  CHECK_THAT(message_of<UsageError>([&] { run_training(options, never()); }),
             ContainsSubstring("training.activations = bf16"));
}

TEST_CASE("activations in bf16 need a device with kernels for them, and f32 parameters") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  options.overrides = {"training.activations=bf16"};
  CHECK_THAT(message_of<UsageError>([&] { run_training(options, never()); }),
             ContainsSubstring("training.activations = bf16") && ContainsSubstring("cpu"));
  options.dtype = DType::f64;
  CHECK_THAT(message_of<UsageError>([&] { run_training(options, never()); }), ContainsSubstring("f64"));
  CHECK_FALSE(std::filesystem::exists(options.out));
}

TEST_CASE("a validation split that is too short for the batch is read with fewer streams") {
  const RunFolder folder(1500);  // 75 characters of validation, 4 rows of 40 need 164
  CHECK(run_training(run_options(folder, "run"), after_steps(100)).step == 24);
}

TEST_CASE("a text that is too short for the batch, and a vocabulary that is not the data's, are refused") {
  const RunFolder folder(1500);
  TrainingRunOptions options = run_options(folder, "run");
  options.overrides = {"training.batch=64"};
  CHECK_THAT(message_of<UsageError>([&] { run_training(options, never()); }),
             ContainsSubstring("largest workable batch"));
  options.overrides = {"model.vocabulary=205"};
  CHECK_THAT(message_of<UsageError>([&] { run_training(options, never()); }), ContainsSubstring("205"));
  options.overrides.clear();
  options.dtype = DType::i32;
  CHECK_THROWS_AS(run_training(options, never()), UsageError);
  options.dtype.reset();
  options.device = parse_device("cuda:77");  // not built, no driver, or not so many cards
  CHECK_THAT(message_of<Error>([&] { run_training(options, never()); }), ContainsSubstring("--device cpu"));
  options.device = {};
  options.config.clear();
  CHECK_THROWS_AS(run_training(options, never()), UsageError);
  CHECK_FALSE(std::filesystem::exists(options.out));
}

TEST_CASE("a training that blows up stops with an error and keeps the last checkpoint") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  options.overrides = {"optimizer.kind=sgd", "optimizer.clip=0", "schedule.rate=1e-3", "training.checkpoint_every=3"};
  CHECK_THROWS_AS(run_training(options, after_steps(3)), Error);
  const std::string good = get_file(checkpoint_path(options.out, CheckpointKind::newest));
  options.resume = true;
  options.overrides.push_back("schedule.rate=1e30");
  CHECK_THAT(message_of<Diverged>([&] { run_training(options, never()); }),
             ContainsSubstring("not finite") && ContainsSubstring("last good checkpoint"));
  CHECK(get_file(checkpoint_path(options.out, CheckpointKind::newest)) == good);
  CHECK_THAT(get_file(options.out / "metrics.jsonl"), ContainsSubstring("\"diverged\""));
}

TEST_CASE("the first number that is not finite is traced to its kernel") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  options.trace_nan = true;
  options.overrides = {"optimizer.kind=sgd", "optimizer.clip=0", "schedule.rate=1e30", "schedule.warmup=0"};
  CHECK_THAT(message_of<Error>([&] { run_training(options, never()); }),
             ContainsSubstring("[layers.0/attention]") && ContainsSubstring("finite"));
  options.overrides.clear();
  options.out = folder / "good";
  CHECK(run_training(options, never()).step == 24);
}

TEST_CASE("a place that cannot be written is one error; an older checkpoint there stays whole") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  CHECK_THROWS_AS(run_training(options, after_steps(2)), Error);
  const auto path = checkpoint_path(options.out, CheckpointKind::newest);
  const std::string before = get_file(path);
  // A folder where the new file is to be made: not even root can write it.
  std::filesystem::create_directory(path.string() + ".partial");
  options.resume = true;
  CHECK_THAT(message_of<FileError>([&] { run_training(options, never()); }), ContainsSubstring("model.safetensors"));
  CHECK(get_file(path) == before);

  options.resume = false;
  options.out = put_file(folder / "file", "x");
  CHECK_THROWS_AS(run_training(options, never()), FileError);
}

TEST_CASE("metrics are whole lines; a torn one at the end is cut off, nothing else is") {
  const TemporaryFolder folder;
  const auto path = folder / "metrics.jsonl";
  {
    MetricsLog log(path);
    log.append({{"step", 1}});
  }
  const std::string line = get_file(path);
  CHECK(line == "{\"step\":1}\n");
  for (std::size_t cut = 0; cut <= line.size(); ++cut) {
    put_file(path, line + line.substr(0, cut));
    MetricsLog log(path);
    CHECK(get_file(path) == (cut == line.size() ? line + line : line));
    log.append({{"step", 2}});
    CHECK(get_file(path) == (cut == line.size() ? line + line : line) + "{\"step\":2}\n");
  }
  put_file(path, "no newline at all");
  const MetricsLog log(path);
  CHECK(get_file(path).empty());
  CHECK_THROWS_AS(MetricsLog(folder / "none" / "metrics.jsonl"), FileError);
  CHECK_THROWS_AS(MetricsLog("/dev/full").append({{"step", 1}}), FileError);
}

TEST_CASE("a progress line has its units in its names") {
  CHECK(progress_text({.step = 1200,
                       .steps = 60000,
                       .loss = 1.0921,
                       .rate = 6.25e-4,
                       .tokens_per_second = 81234,
                       .mean_span = 97.34,
                       .seconds_left = 3723}) ==
        "step 1200/60000 loss 1.0921 bpc 1.5756 lr 6.25e-04 tokens/s 81234 span 97.3 left 1:02:03");
  CHECK_THAT(progress_text({.seconds_left = 61}), ContainsSubstring("left 1:01"));
}

}  // namespace
}  // namespace engram::harness::training_run_test

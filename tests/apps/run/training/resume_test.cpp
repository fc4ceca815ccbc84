/// A run that is stopped and continued must end with the very bytes of one that was not, and a run that cannot be
/// continued must be refused with its reasons.

#include <sstream>

#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "nn/checkpoint.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::resume_test {
namespace {

std::vector<nlohmann::json> metrics_of(const TrainingRunOptions& options) {
  std::istringstream lines(get_file(options.out / "metrics.jsonl"));
  std::vector<nlohmann::json> metrics;
  for (std::string line; std::getline(lines, line);) metrics.push_back(nlohmann::json::parse(line));
  return metrics;
}

/// The lines that count, without what depends on time or on being continued.
std::vector<nlohmann::json> lasting(const std::vector<nlohmann::json>& metrics) {
  std::vector<nlohmann::json> kept;
  for (nlohmann::json line : metrics) {
    const std::string event = line["event"];
    if (event == "resume")
      while (!kept.empty() && kept.back()["step"] > line["step"]) kept.pop_back();
    for (const char* name : {"tokens_per_second", "seconds", "time"}) line.erase(name);
    if (event == "train" || event == "valid_short") kept.push_back(line);
  }
  return kept;
}

TEST_CASE("a run that is stopped anywhere and resumed is bit-identical to one that is not") {
  const RunFolder folder;
  const TrainingRunOptions whole = run_options(folder, "whole");
  CHECK(run_training(whole, never()).step == 24);
  // 5400 training characters in 4 rows are 33 blocks; a second pass begins in the longer run below.
  for (const std::vector<int>& stops : {std::vector<int>{1}, {6, 1, 8}, {7}, {10, 5}}) {
    TrainingRunOptions parts = run_options(folder, text("parts", stops.size(), ".", stops[0]));
    for (const int steps : stops) {
      CHECK_THROWS_AS(run_training(parts, after_steps(steps)), Interrupted);
      parts.resume = true;
    }
    CHECK(run_training(parts, never()).step == 24);
    CHECK(newest_checkpoint(parts) == newest_checkpoint(whole));
    CHECK(get_file(checkpoint_path(parts.out, CheckpointKind::best)) ==
          get_file(checkpoint_path(whole.out, CheckpointKind::best)));
    CHECK(lasting(metrics_of(parts)) == lasting(metrics_of(whole)));
  }
}

/// Stopped after each of these numbers of steps and continued, a run has the bytes of the whole one.
void check_resumed(const RunFolder& folder, const TrainingRunOptions& whole, const std::vector<int>& stops) {
  run_training(whole, never());
  for (const int steps : stops) {
    TrainingRunOptions parts = whole;
    parts.out = folder / text("parts", steps);
    CHECK_THROWS_AS(run_training(parts, after_steps(steps)), Interrupted);
    parts.resume = true;
    parts.config.clear();  // the run knows it
    parts.dtype.reset();
    parts.overrides.clear();
    run_training(parts, never());
    CHECK(newest_checkpoint(parts) == newest_checkpoint(whole));
  }
}

TEST_CASE("resuming is bit-identical across a wrap of the reader, with Adam, in f64, whole batches, key mask") {
  const RunFolder folder(1500);
  TrainingRunOptions whole = run_options(folder, "whole");
  whole.overrides = {"optimizer.kind=adam", "optimizer.clip=1", "schedule.rate=0.01",
                     "training.split=1",    "model.pad=mask",   "schedule.steps=30"};
  whole.dtype = DType::f64;
  check_resumed(folder, whole, {7, 8, 9, 20});
}

TEST_CASE("resuming is bit-identical with Nesterov's momentum, at a rate that changes") {
  const RunFolder folder;
  TrainingRunOptions whole = run_options(folder, "whole");
  whole.overrides = {"optimizer.kind=sgd",      "optimizer.clip=0.1",    "optimizer.momentum=0.9",
                     "optimizer.nesterov=true", "schedule.decay=cosine", "schedule.warmup=3"};
  check_resumed(folder, whole, {2, 11});
}

TEST_CASE("a killed process loses what came after its checkpoint and nothing else") {
  const RunFolder folder;
  const TrainingRunOptions whole = run_options(folder, "whole");
  run_training(whole, never());
  TrainingRunOptions killed = run_options(folder, "killed");
  const auto kill_at_13 = [asked = 0]() mutable -> bool {
    if (++asked == 13) throw std::runtime_error("killed");
    return false;
  };
  CHECK_THROWS_AS(run_training(killed, kill_at_13), std::runtime_error);
  std::ofstream(killed.out / "metrics.jsonl", std::ios::app) << R"({"event":"train","st)";
  killed.resume = true;
  run_training(killed, never());
  CHECK(newest_checkpoint(killed) == newest_checkpoint(whole));
  CHECK(lasting(metrics_of(killed)) == lasting(metrics_of(whole)));
}

TEST_CASE("a complete run stays as it is when it is resumed, and goes on when it is given more steps") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  run_training(options, never());
  const std::string done = newest_checkpoint(options);
  options.resume = true;
  CHECK(run_training(options, never()).step == 24);
  CHECK(newest_checkpoint(options) == done);
  options.overrides = {"schedule.steps=26"};
  CHECK(run_training(options, never()).step == 26);
}

TEST_CASE("a run is never overwritten, and none is invented") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  options.resume = true;
  CHECK_THAT(message_of<UsageError>([&] { run_training(options, never()); }), ContainsSubstring("--resume"));
  options.resume = false;
  CHECK_THROWS_AS(run_training(options, after_steps(2)), Interrupted);
  CHECK_THAT(message_of<UsageError>([&] { run_training(options, never()); }),
             ContainsSubstring("--resume") && ContainsSubstring("run"));
}

TEST_CASE("another model, optimiser or dtype is refused on resume, key by key") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  CHECK_THROWS_AS(run_training(options, after_steps(2)), Interrupted);
  options.resume = true;
  const std::string before = newest_checkpoint(options);
  const auto message = [&](std::vector<std::string> overrides) {
    TrainingRunOptions other = options;
    other.overrides = std::move(overrides);
    return message_of<UsageError>([&] { run_training(other, never()); });
  };
  CHECK_THAT(message({"model.slots=6", "model.pad=mask"}),
             ContainsSubstring("model.slots: 5 -> 6") && ContainsSubstring("model.pad: \"attend_zero\" -> \"mask\""));
  CHECK_THAT(message({"optimizer.kind=sgd"}), ContainsSubstring("optimizer.kind"));
  options.dtype = DType::f64;
  CHECK_THAT(message({}), ContainsSubstring("f32") && ContainsSubstring("f64"));
  CHECK(newest_checkpoint(options) == before);
}

TEST_CASE("another batch or other data of the same vocabulary are allowed, with fresh readers") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  CHECK_THROWS_AS(run_training(options, after_steps(3)), Interrupted);
  options.resume = true;
  options.overrides = {"training.batch=6", "training.split=3", "training.block=32"};
  CHECK_THROWS_AS(run_training(options, after_steps(2)), Interrupted);

  data::PrepareOptions other;  // the same beginning, hence the same vocabulary
  other.text = put_file(folder / "other", small_text(7000));
  other.out = folder / "other-data";
  data::prepare(other);
  options.data = other.out;
  CHECK(run_training(options, never()).step == 24);
}

TEST_CASE("data of another vocabulary are refused") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  CHECK_THROWS_AS(run_training(options, after_steps(3)), Interrupted);
  data::PrepareOptions other;
  other.text = put_file(folder / "other", "#" + small_text(6000));
  other.out = folder / "other-data";
  data::prepare(other);
  options.resume = true;
  options.data = other.out;
  const auto refusal = [&] { return message_of<FileError>([&] { run_training(options, never()); }); };
  CHECK_THAT(refusal(), ContainsSubstring("vocabulary"));
  options.config.clear();  // the run's own, which names the size of its vocabulary
  CHECK_THAT(refusal(), ContainsSubstring("vocabulary"));
}

}  // namespace
}  // namespace engram::harness::resume_test

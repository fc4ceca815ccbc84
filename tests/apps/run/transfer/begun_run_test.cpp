/// Runs that begin with the weights of other runs: `engram train --from`.

#include <filesystem>
#include <sstream>

#include "apps/run/weights/mapped_run.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_results.hpp"
#include "tests/apps/run/product_key_fixture.hpp"
#include "tests/apps/run/transfer/transfer_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::harness::begun_run_test {
namespace {

namespace fs = std::filesystem;

nlohmann::json first_line(const TrainingRunOptions& options) {
  std::istringstream lines(get_file(options.out / "metrics.jsonl"));
  std::string line;
  std::getline(lines, line);
  return nlohmann::json::parse(line);
}

TEST_CASE("a run that begins with weights of another one goes on bit for bit, when that is long gone") {
  const RunFolder folder;
  TrainingRunOptions source = run_options(folder, "source");
  source.overrides = {"schedule.steps=8"};
  run_training(source, never());
  const auto other = make_data(folder / "other", other_text(6000));
  TrainingRunOptions whole = run_options(folder, "whole");
  whole.from = source.out;
  whole.data = other;
  whole.config.clear();  // that of the source
  whole.overrides = {"model.max_span=64", "training.freeze=layers.0.*", "schedule.steps=14", "schedule.rate=0.02"};
  CHECK(run_training(whole, never()).step == 14);
  TrainingRunOptions parts = whole;
  parts.out = folder / "parts";
  CHECK_THROWS_AS(run_training(parts, after_steps(3)), Interrupted);
  fs::rename(source.out, folder / "gone");
  parts.resume = true;  // the command that began it, with --resume
  CHECK_THROWS_AS(run_training(parts, after_steps(5)), Interrupted);
  parts.from.clear();
  parts.overrides.clear();
  CHECK(run_training(parts, never()).step == 14);
  CHECK(newest_checkpoint(parts) == newest_checkpoint(whole));

  const CheckpointFile newest(checkpoint_path(whole.out, CheckpointKind::newest));
  const nlohmann::json from = nlohmann::json::parse(newest.metadata().at("engram.from"));
  const CheckpointFile old(checkpoint_path(folder / "gone", CheckpointKind::newest));
  CHECK(from.at("checksum") == old.checksum());
  CHECK(from.at("step") == 8);
  CHECK(from.at("model").at("model.max_span") == nlohmann::json{"48", "64"});
  CHECK(first_line(whole).at("from") == from);
  CHECK(CheckpointFile(checkpoint_path(whole.out, CheckpointKind::best)).metadata().at("engram.from") ==
        newest.metadata().at("engram.from"));
  const RunConfig config = read_facts(newest).config;
  CHECK(config.training.freeze == std::vector<std::string>{"layers.0.*"});
  CHECK(config.optimizer.clip == 0.5);  // the source's
  // No step of its own yet: the source's weights, the frozen ones to the end.
  const auto query = [](const CheckpointFile& file) {
    const auto bytes = file.bytes(file.at("layers.0.attention.query"));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  CHECK(query(newest) == query(old));
}

TEST_CASE("several ranks begin with the same weights as one, each with its columns of a table") {
  const RunFolder folder;
  const TrainingRunOptions source = memory_run(folder, "source");
  run_training(source, never());
  TrainingRunOptions one =
      memory_run(folder, "one",
                 {"product_key.subkeys=14", "training.split=2", "product_key.value_dtype=bf16", "schedule.steps=4"});
  one.from = source.out;
  run_training(one, never());
  TrainingRunOptions two = one;
  two.out = folder / "two";
  run_ranks(2, [&](Communicator& ranks) {
    TrainingRunOptions own = two;
    own.ranks = &ranks;
    run_training(own, never());
  });
  CHECK(newest_checkpoint(two) == newest_checkpoint(one));
}

TEST_CASE("weights that do not go with the options are refused, and leave no folder") {
  const RunFolder folder;
  TrainingRunOptions source = run_options(folder, "source");
  source.overrides = {"schedule.steps=2"};
  run_training(source, never());
  TrainingRunOptions options = run_options(folder, "run");
  options.from = source.out;
  const auto refusal = [](const TrainingRunOptions& with) {
    return message_of<Error>([&] { run_training(with, never()); });
  };
  TrainingRunOptions both = options;
  both.resume = true;
  CHECK_THAT(refusal(both), ContainsSubstring("--resume needs the checkpoint"));
  both.out = source.out;
  CHECK_THAT(refusal(both), ContainsSubstring("--from begins a new run, got --resume of"));
  TrainingRunOptions nowhere = options;
  nowhere.from = folder / "nowhere";
  CHECK_THAT(refusal(nowhere), ContainsSubstring("nowhere"));
  TrainingRunOptions family = options;
  family.config = put_file(folder / "xl.toml", small_xl_config());
  CHECK_THAT(refusal(family), ContainsSubstring("that of the configuration"));
  TrainingRunOptions over = options;
  over.out = source.out;
  CHECK_THAT(refusal(over), ContainsSubstring("must be a new folder"));

  TrainingRunOptions memories = memory_run(folder, "memories", {"schedule.steps=1"});
  run_training(memories, never());
  map_run(memories.out, CheckpointKind::newest, folder / "mapped");
  memories.from = folder / "mapped";
  memories.out = folder / "run";
  CHECK_THAT(refusal(memories), ContainsSubstring("mapped files"));
  CHECK_FALSE(fs::exists(folder / "run"));
}

TEST_CASE("command line: imported weights are trained on, with a schedule of their own") {
  const TemporaryFolder folder;
  const auto path = [&](const char* name) { return (folder / name).string(); };
  const auto ran = [](const std::vector<std::string>& arguments) {
    const ProcessResult result = run_engram(arguments);
    CAPTURE(result.err);
    REQUIRE(result.exit_code == 0);
    return result;
  };
  const fs::path released = fs::path(ENGRAM_SOURCE_DIR) / "tests/golden/released";
  // Thirty tokens in the order of the ids, as the files' models have.
  std::string tokens, sentence;
  for (int id = 0; id < 30; ++id) {
    tokens += text("w", id, "\n");
    sentence += text("w", id, id == 29 ? "\n" : " ");
  }
  std::string all;
  for (int line = 0; line < 60; ++line) all += sentence;
  put_file(folder / "tokens", tokens);
  const std::string data = make_data(folder / "words", all, data::TokenKind::word).string();
  for (const auto& [program, file] :
       {std::pair{"adaptive-span", "adaptive-span.pt"}, std::pair{"transformer-xl", "transformer-xl.pt"}}) {
    CAPTURE(program);
    const std::string checkpoint = path(program) + ".engram", run = path(program);
    ran({"import", "--from", program, (released / file).string(), "--out", checkpoint, "--vocab", path("tokens")});
    const std::vector<std::string> base{"train", "--from", checkpoint, "--data", data, "--out", run};
    CHECK_THAT(error_of(base, 2), ContainsSubstring("have no schedule") && ContainsSubstring("--set schedule.rate"));
    std::vector<std::string> tuned = base;
    for (const char* argument : {"--steps", "2", "--set", "schedule.rate=1e-3", "--set", "training.batch=2", "--set",
                                 "training.block=6", "--freeze", "embedding.*", "--freeze", "layers.0.*"})
      tuned.emplace_back(argument);
    const ProcessResult result = ran(tuned);
    CHECK_THAT(result.err, ContainsSubstring("the run begins with weights") &&
                               ContainsSubstring("of 31 symbols keep") && ContainsSubstring("are frozen"));
    for (std::istringstream lines(result.err); !lines.eof();) {
      std::string line;
      std::getline(lines, line);
      if (line.starts_with("  ")) CHECK(line.size() <= 80);
    }
    ran({"evaluate", run, "--data", data});
  }
}

}  // namespace
}  // namespace engram::harness::begun_run_test

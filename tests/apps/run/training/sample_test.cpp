/// What a model writes while it is trained: the same wherever the run was stopped, what `engram generate` writes with
/// the same weights, and nothing that the training would notice.

#include "apps/run/training/sample.hpp"

#include <filesystem>
#include <string_view>
#include <utility>

#include "apps/data/text/utf8.hpp"
#include "apps/run/folder/metrics_reader.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/terminal/terminal.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "nn/checkpoint.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/product_key_fixture.hpp"
#include "tests/apps/run/recurrent_fixture.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::sample_test {
namespace {

using nlohmann::json;

/// The run's samples as they count, without times.
std::vector<json> samples_of(const TrainingRunOptions& options) {
  std::vector<json> samples = read_reports(options.out / "metrics.jsonl", "sample");
  for (json& sample : samples) {
    CHECK(sample.at("seconds").is_number());
    for (const char* name : {"time", "seconds"}) sample.erase(name);
  }
  return samples;
}

/// A small run over what a test has prepared in the folder `data`.
TrainingRunOptions run_over_data(const TemporaryFolder& folder, std::vector<std::string> overrides) {
  TrainingRunOptions options;
  options.config = put_file(folder / "config.toml", small_config());
  options.data = folder / "data";
  options.out = folder / "run";
  options.threads = 1;
  options.overrides = std::move(overrides);
  return options;
}

/// Trains with and without samples, which must leave the same bytes but for the one that asks for them. Returns the run
/// with samples.
TrainingRunOptions check_same_bits(TrainingRunOptions options) {
  options.overrides.emplace_back("training.sample_prompt=a");
  run_training(options, never());
  TrainingRunOptions sampled = options;
  sampled.out += "-sampled";
  sampled.overrides.emplace_back("training.sample_every=5");
  run_training(sampled, never());
  for (const CheckpointKind kind : {CheckpointKind::newest, CheckpointKind::best}) {
    const auto bytes_of = [kind](const TrainingRunOptions& run) {
      std::string bytes = get_file(checkpoint_path(run.out, kind));
      // The digit of the key, and the checksum that it changes.
      for (const auto& [before, digits] : {std::pair{std::string_view("sample_every = "), 1}, {"crc32:", 8}}) {
        const std::size_t at = bytes.find(before);
        REQUIRE(at != std::string::npos);
        bytes.replace(at + before.size(), digits, digits, '0');
      }
      return bytes;
    };
    CHECK((bytes_of(sampled) == bytes_of(options)));
  }
  CHECK(samples_of(options).empty());
  CHECK(samples_of(sampled).size() >= 3);
  return sampled;
}

TEST_CASE("samples: they leave no trace in the weights, of every family") {
  const RunFolder folder;
  SECTION("all_attention: spans, dropout, means of the weights") {
    TrainingRunOptions options = run_options(folder, "run");
    options.overrides = {"training.weight_average=true", "training.validate_every=2"};
    check_same_bits(options);
  }
  SECTION("transformer_xl") {
    TrainingRunOptions options = run_options(folder, "run");
    options.config =
        put_file(folder / "xl.toml",
                 "[model]\nfamily = \"transformer_xl\"\nlayers = 2\nwidth = 16\nheads = 2\ninner = 24\n"
                 "memory = 24\ndropout = 0.1\n[optimizer]\nkind = \"adam\"\n[schedule]\nrate = 0.01\n"
                 "steps = 12\n[training]\nbatch = 4\nblock = 20\nvalidate_every = 5\nvalidate_blocks = 2\n");
    check_same_bits(options);
  }
  SECTION("product_key, with tables whose rows are late") {
    TrainingRunOptions options = memory_run(folder, "run");
    options.overrides = {"optimizer.table_mode=deferred", "optimizer.table_epsilon=0"};
    check_same_bits(options);
  }
}

TEST_CASE("samples: recurrent models write articles' words") {
  const ArticleFolder folder;
  TrainingRunOptions options = recurrent_run(folder, "run", {"schedule.steps=12"});
  const std::vector<json> samples = samples_of(check_same_bits(options));
  REQUIRE(samples.size() == 3);
  CHECK(samples[0].at("prompt") == "a");
}

TEST_CASE("samples: a run writes what engram generate writes with its weights, wherever it was stopped") {
  const RunFolder folder;
  TrainingRunOptions whole = run_options(folder, "whole");
  whole.overrides = {"training.sample_every=7", "training.sample_prompt=\"bread \""};
  run_training(whole, never());
  const std::vector<json> samples = samples_of(whole);
  REQUIRE(samples.size() == 4);
  for (std::size_t i = 0; i < samples.size(); ++i) {
    CHECK(samples[i].at("step") == std::vector{7, 14, 21, 24}[i]);
    CHECK(samples[i].at("prompt") == "bread ");
    CHECK(samples[i].at("text").get<std::string>().size() == Sample::kLength);
    CHECK((i == 0 || samples[i].at("seed") != samples[i - 1].at("seed")));
  }
  const ProcessResult written = run_engram(
      {"generate", whole.out.string(), "--prompt", "bread ", "--length", text(Sample::kLength), "--temperature",
       text(Sample::kTemperature), "--seed", text(samples[3].at("seed").get<std::uint64_t>()), "--threads", "1"});
  CHECK(written.out == "bread " + samples[3].at("text").get<std::string>());

  TrainingRunOptions parts = whole;
  parts.out = folder / "parts";
  for (const int steps : {9, 3}) {
    CHECK_THROWS_AS(run_training(parts, after_steps(steps)), Interrupted);
    parts.resume = true;
  }
  run_training(parts, never());
  CHECK(samples_of(parts) == samples);
  CHECK(newest_checkpoint(parts) == newest_checkpoint(whole));

  // Another seed writes another text.
  TrainingRunOptions other = whole;
  other.out = folder / "other";
  other.overrides.emplace_back("training.seed=12");
  run_training(other, never());
  CHECK(samples_of(other)[0].at("text") != samples[0].at("text"));
}

TEST_CASE("samples: a prompt that the model cannot read is refused before anything is made") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  options.overrides = {"training.sample_every=7", "training.sample_prompt=Queen"};
  CHECK_THAT(
      message_of<UsageError>([&] { run_training(options, never()); }),
      ContainsSubstring("training: training.sample_prompt must have only characters that the model knows, got "));
  CHECK_FALSE(std::filesystem::exists(options.out));
  // As long as nothing is to be written nobody minds.
  options.overrides = {"training.sample_prompt=Queen", "schedule.steps=5"};
  run_training(options, never());

  const RunFolder words(4000, 1, data::TokenKind::word);
  TrainingRunOptions spelled = run_options(words, "run");
  spelled.overrides = {"training.sample_every=7", "training.sample_prompt=a Q"};
  const std::string refused = message_of<UsageError>([&] { run_training(spelled, never()); });
  CHECK_THAT(refused, ContainsSubstring("must have only words that the model knows, got 'Q'"));
  CHECK(refused.find("--oov") == std::string::npos);
}

TEST_CASE("samples: a model that knows no line end needs a prompt") {
  const TemporaryFolder folder;
  data::PrepareOptions prepare;
  prepare.text = put_file(folder / "text", small_text(6000));
  prepare.drop_newlines = true;
  prepare.out = folder / "data";
  data::prepare(prepare);
  TrainingRunOptions options = run_over_data(folder, {"training.sample_every=7", "schedule.steps=7"});
  CHECK_THAT(message_of<UsageError>([&] { run_training(options, never()); }),
             ContainsSubstring("training: without a prompt the text begins after a newline, and the model knows none\n"
                               "  training.sample_prompt gives a beginning"));
  options.overrides.emplace_back("training.sample_prompt=an");
  run_training(options, never());
  CHECK(samples_of(options).size() == 1);
}

TEST_CASE("samples: bytes that are no text are no reason for a log that cannot be read") {
  const TemporaryFolder folder;
  data::PrepareOptions prepare;
  std::string written;
  while (written.size() < 6000) written += "\xc3\xa9t\xc3\xa9 \xe2\x82\xac\n";
  prepare.text = put_file(folder / "text", written);
  prepare.out = folder / "data";
  data::prepare(prepare);
  const TrainingRunOptions options =
      run_over_data(folder, {"training.sample_every=1", "schedule.steps=2", "schedule.warmup=1", "schedule.rate=1e-6"});
  run_training(options, never());
  const std::string log = get_file(options.out / "metrics.jsonl");
  CHECK(data::find_invalid_utf8(log) == log.size());
  const std::vector<json> samples = samples_of(options);  // reads every line as JSON
  REQUIRE(samples.size() == 2);
  CHECK_THAT(samples[0].at("text").get<std::string>(), ContainsSubstring(std::string(data::kReplacement)));
}

TEST_CASE("samples: the line for people is one line, as wide as it may be") {
  const auto line = [](const std::string& prompt, const std::string& text, std::int64_t columns) {
    return sample_line(12, {.prompt = prompt, .text = text}, columns);
  };
  CHECK(line("", "a\n\nb\tc\r\nd\n", 80) == "step 12 sample: a / b c / d / ");
  CHECK(line("\n", "x", 80) == "step 12 sample: x");
  CHECK(line("p ", "q\x1b[2J\x7f\xc2\x9bx", 80) == "step 12 sample: p q [2J  x");
  CHECK(line("caf\xc3", "\xa9 \xff.", 80) == "step 12 sample: caf\xc3\xa9 \xef\xbf\xbd.");
  CHECK(line("", "0123456789", 26) == "step 12 sample: 0123456789");
  CHECK(line("", "0123456789a", 26) == "step 12 sample: 0123456...");
  // Wide characters take two columns, and none is cut through.
  const std::string wide = "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe6\x97\xa5";
  CHECK(line("", wide, 24) == "step 12 sample: " + wide);
  CHECK(line("", wide + "x", 24) == "step 12 sample: " + wide.substr(0, 6) + "...");
  for (std::int64_t columns = 4; columns < 40; ++columns) CHECK(columns_of(line("", wide + wide, columns)) <= columns);
}

}  // namespace
}  // namespace engram::harness::sample_test

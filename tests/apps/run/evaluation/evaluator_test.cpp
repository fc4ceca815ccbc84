/// Evaluation: the papers' way and the exact one, with caches of hidden states or of keys and values, whatever the
/// blocks; what is scored; and the command's refusals.

#include "apps/run/evaluation/evaluator.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <span>

#include "apps/commands/commands.hpp"
#include "apps/data/blocks/article_reader.hpp"
#include "apps/run/model/trained_model.hpp"
#include "core/error.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::evaluator_test {
namespace {

/// A model after a few steps, in f64, and its test split.
struct EvaluationBench : RunFolder {
  Runtime runtime{{}, 1};
  TrainingRunOptions options;
  std::unique_ptr<TrainedModel> trained;
  std::unique_ptr<data::DataSet> data_set;

  EvaluationBench() {
    options = run_options(*this, "run");
    options.overrides = {"schedule.steps=12", "model.span_init=0.3"};
    run_training(options, never());
    trained = std::make_unique<TrainedModel>(options.out, CheckpointKind::newest, runtime, DType::f64);
    data_set = std::make_unique<data::DataSet>(data::DataSet::open(data()));
  }
  data::TokenView test() const { return data_set->split("test"); }
  LanguageModel& model() { return trained->model(); }
  ModelPast ring(int rows) {
    return model().frozen_past(runtime.backend(), runtime.memory(), rows, DType::f64, 1 << 10);
  }
  ModelPast hidden(int rows) { return model().training_past(runtime.backend(), runtime.memory(), rows, DType::f64); }
  Evaluation run(data::EvaluationPlan& plan, ModelPast past, const TokenLoss& found = {}) {
    return evaluate({model(), runtime, DType::f64}, plan, past, {.found = found});
  }
};

TEST_CASE("exact evaluation does not depend on blocks, caches or rows, and scores every token but the first") {
  EvaluationBench bench;
  std::map<std::int64_t, double> losses;
  data::ExactEvaluation whole(bench.test(), 40);
  const Evaluation expected = bench.run(
      whole, bench.ring(1), [&](std::int64_t token, double nll) { CHECK(losses.emplace(token, nll).second); });
  const std::int64_t tokens = bench.test().size();
  CHECK(expected.scored == tokens - 1);
  CHECK(std::int64_t(losses.size()) == tokens - 1);
  CHECK(losses.begin()->first == 1);
  CHECK(losses.rbegin()->first == tokens - 1);
  CHECK(expected.bits() == Approx(expected.nll() / std::log(2.0)));
  double sum = 0;
  for (const auto& [token, nll] : losses) sum += nll;
  CHECK(expected.nll_sum == Approx(sum).epsilon(1e-12));

  for (const int block : {1, 7, 64, 1000}) {
    data::ExactEvaluation plan(bench.test(), block);
    CHECK(bench.run(plan, bench.ring(1)).nll_sum == Approx(expected.nll_sum).epsilon(1e-12));
    CHECK(bench.run(plan, bench.hidden(1)).nll_sum == Approx(expected.nll_sum).epsilon(1e-12));
  }
  data::ExactEvaluation rows(bench.test(), 16, 3, 2 * 48);
  std::map<std::int64_t, double> by_rows;
  const Evaluation in_rows = bench.run(rows, bench.ring(3), [&](std::int64_t token, double nll) {
    CHECK(by_rows.emplace(token, nll).second);
    CHECK(nll == Approx(losses[token]).epsilon(1e-10));
  });
  CHECK(in_rows.scored == expected.scored);
  CHECK(by_rows.size() == losses.size());
}

TEST_CASE("the papers' evaluation scores whole blocks of each row, and blocks do not change what they share") {
  EvaluationBench bench;
  const std::int64_t row = bench.test().size() / 4;
  data::FullEvaluation plan(bench.test(), 16, 4);
  std::map<std::int64_t, double> losses;
  const Evaluation result =
      bench.run(plan, bench.ring(4), [&](std::int64_t token, double nll) { losses[token] = nll; });
  CHECK(result.scored == (row - 1) / 16 * 16 * 4);
  CHECK(std::int64_t(losses.size()) == result.scored);
  CHECK(losses.count(0) == 0);
  CHECK(losses.count(row) == 0);
  CHECK(losses.count(row + 1) == 1);
  data::FullEvaluation other(bench.test(), 5, 4);
  bench.run(other, bench.hidden(4), [&](std::int64_t token, double nll) {
    if (losses.count(token) == 1) CHECK(nll == Approx(losses[token]).epsilon(1e-10));
  });
}

TEST_CASE("losses of articles are told with the places of their targets") {
  EvaluationBench bench;
  const data::TokenView test = bench.test();
  std::vector<std::int32_t> ids(static_cast<std::size_t>(test.size()));
  test.copy(0, test.size(), ids.data());
  std::map<std::int64_t, double> expected, found;
  data::ExactEvaluation exact(test, 40);
  bench.run(exact, bench.ring(1), [&](std::int64_t token, double nll) { expected[token] = nll; });

  // One article, which the split's first token is before: the same inputs and targets, one place earlier.
  const auto tokens = std::span<const std::int32_t>(ids).subspan(1);
  const std::vector<std::int64_t> one{0}, several{0, 30, 31, 100, 240};
  data::ArticleEvaluation whole({data::TokenView(tokens), one, ids[0]}, 40);
  const Evaluation result =
      bench.run(whole, bench.ring(1), [&](std::int64_t token, double nll) { CHECK(found.emplace(token, nll).second); });
  CHECK(result.scored == std::ssize(tokens));
  REQUIRE(found.size() == expected.size());
  for (const auto& [token, nll] : found) CHECK(nll == Approx(expected.at(token + 1)).epsilon(1e-10));

  found.clear();
  data::ArticleEvaluation streams({data::TokenView(tokens), several, ids[0]}, 7, 3);
  const Evaluation in_streams = bench.run(
      streams, bench.ring(3), [&](std::int64_t token, double nll) { CHECK(found.emplace(token, nll).second); });
  CHECK(in_streams.scored == std::ssize(tokens));
  CHECK(std::ssize(found) == std::ssize(tokens));
  CHECK(found.begin()->first == 0);
  CHECK(found.rbegin()->first == std::ssize(tokens) - 1);
}

TEST_CASE("tokens a second are the median of blocks, without those that warm up") {
  Evaluation read;
  CHECK(read.tokens_per_second() == 0);
  read.blocks = {{100, 100}};
  CHECK(read.tokens_per_second() == 1);
  read.blocks = {{100, 100}, {100, 2}, {100, 1}, {100, 50}};
  CHECK(read.tokens_per_second() == 50);
  CHECK(read.tokens_per_second(2) == 100);
  CHECK(read.tokens_per_second(4) == 50);

  EvaluationBench bench;
  data::FullEvaluation plan(bench.test(), 16, 4);
  const Evaluation result = bench.run(plan, bench.ring(4));
  std::int64_t inputs = 0;
  double seconds = 0;
  for (const TimedBlocks& block : result.blocks) {
    inputs += block.inputs;
    seconds += block.seconds;
  }
  CHECK(std::ssize(result.blocks) == plan.block_count());
  CHECK(inputs == result.inputs);
  CHECK(seconds <= result.seconds);
}

TEST_CASE("evaluating twice gives the same, and f32 nearly the same as f64") {
  EvaluationBench bench;
  data::FullEvaluation plan(bench.test(), 16, 4);
  const Evaluation first = bench.run(plan, bench.ring(4));
  CHECK(bench.run(plan, bench.ring(4)).nll_sum == first.nll_sum);
  TrainedModel single(bench.options.out, CheckpointKind::newest, bench.runtime, DType::f32);
  ModelPast past = single.model().frozen_past(bench.runtime.backend(), bench.runtime.memory(), 4, DType::f32, 16);
  const Evaluation rough = evaluate({single.model(), bench.runtime, DType::f32}, plan, past);
  CHECK(rough.nll() == Approx(first.nll()).epsilon(1e-5));
  CHECK(rough.scored == first.scored);
}

void command(std::vector<std::string> arguments) {
  CommandLine line("engram", "");
  add_evaluate_command(line.commands());
  arguments.insert(arguments.begin(), "evaluate");
  line.run(arguments);
}

TEST_CASE("engram evaluate writes losses per token and refuses what does not fit") {
  EvaluationBench bench;
  const std::string run = bench.options.out.string(), data = bench.data().string();
  const std::string npy = (bench / "losses.npy").string();
  command({run, "--data", data, "--split", "test", "--exact", "--per-token", npy, "--threads", "1"});
  const std::string bytes = get_file(npy);
  const auto count = static_cast<std::size_t>(bench.test().size());
  REQUIRE(bytes.size() > 4 * count);
  const std::size_t header = bytes.size() - 4 * count;
  CHECK(header % 64 == 0);
  CHECK(bytes.substr(1, 5) == "NUMPY");
  CHECK_THAT(bytes.substr(0, header), ContainsSubstring("'<f4'") && ContainsSubstring(text("(", count, ",)")));
  std::vector<float> losses(count);
  std::memcpy(losses.data(), bytes.data() + header, 4 * count);
  CHECK(std::isnan(losses[0]));
  CHECK(losses[1] > 0);
  CHECK(losses.back() > 0);

  command({run, "--data", data, "--split", "test", "--exact", "--dtype", "f64", "--per-token", npy, "--threads", "1"});
  const std::string doubles = get_file(npy);
  REQUIRE(doubles.size() == header + 8 * count);
  CHECK_THAT(doubles.substr(0, header), ContainsSubstring("'<f8'") && ContainsSubstring(text("(", count, ",)")));
  std::vector<double> exact(count);
  std::memcpy(exact.data(), doubles.data() + header, 8 * count);
  data::ExactEvaluation plan(bench.test(), 40);
  std::map<std::int64_t, double> expected;
  bench.run(plan, bench.ring(1), [&](std::int64_t token, double nll) { expected[token] = nll; });
  CHECK(std::isnan(exact[0]));
  double worst = 0;
  std::size_t rounded = 0;
  for (const auto& [token, nll] : expected) {
    const auto place = static_cast<std::size_t>(token);
    worst = std::max(worst, std::abs(exact[place] - nll) / nll);
    rounded += exact[place] == static_cast<double>(static_cast<float>(exact[place]));
    CHECK(losses[place] == Approx(exact[place]).margin(1e-3));
  }
  CHECK(worst < 1e-10);
  CHECK(rounded < expected.size() / 2);

  CHECK_THROWS_AS(command({run, "--data", data, "--split", "tset"}), UsageError);
  CHECK_THROWS_AS(command({run, "--data", data, "--split", "test", "--batch", "100"}), UsageError);
  CHECK_THROWS_AS(command({run, "--data", data, "--dtype", "i32"}), UsageError);
  CHECK_THROWS_AS(command({run, "--data", data, "--device", "cuda:77"}), Error);
  CHECK_THROWS_AS(command({(bench / "none").string(), "--data", data}), FileError);
  CHECK_THROWS_AS(command({data, "--data", data}), FileError);

  data::PrepareOptions other;
  other.text = put_file(bench / "other", "#" + small_text(6000));
  other.out = bench / "other-data";
  data::prepare(other);
  CHECK_THAT(message_of<FileError>([&] {
               command({run, "--data", other.out.string()});
             }),
             ContainsSubstring("vocabulary"));
}

TEST_CASE("the best checkpoint holds the model alone, and can be evaluated") {
  EvaluationBench bench;
  const CheckpointFile best(checkpoint_path(bench.options.out, CheckpointKind::best));
  CHECK_FALSE(best.has_group("optimizer/"));
  CHECK_FALSE(best.has_group("state/"));
  TrainedModel trained(bench.options.out, CheckpointKind::best, bench.runtime);
  CHECK(trained.step() == 12);
  CHECK(trained.vocabulary().hash() == bench.data_set->vocabulary().hash());
  CHECK(trained.config().model.all_attention.vocabulary == trained.vocabulary().size());
}

TEST_CASE("a checkpoint without configuration, vocabulary or of another format is refused by name") {
  EvaluationBench bench;
  const CheckpointFile good(checkpoint_path(bench.options.out, CheckpointKind::best));
  const auto refusal = [&](std::string_view key, const char* value) {
    Metadata metadata = good.metadata();
    metadata.erase(metadata.find(key));
    if (value != nullptr) metadata.emplace(std::string(key), value);
    const auto path = bench / "changed.safetensors";
    save_checkpoint(path, bench.runtime.backend(), named_tensors(bench.trained->store()), metadata);
    return message_of<Error>([&] { TrainedModel(path, CheckpointKind::newest, bench.runtime); });
  };
  CHECK_THAT(refusal(metadata_keys::kConfig, nullptr), ContainsSubstring("engram.config"));
  CHECK_THAT(refusal(metadata_keys::kVocabulary, nullptr), ContainsSubstring("engram.vocabulary"));
  CHECK_THAT(refusal(metadata_keys::kFormat, "2"), ContainsSubstring("format"));
  CHECK_THAT(refusal(metadata_keys::kStep, "-3"), ContainsSubstring("step"));
  CHECK_THAT(refusal(metadata_keys::kConfig, "[model]\nlayers = \"x\"\n"), ContainsSubstring("model.layers"));
  CHECK_THAT(refusal(metadata_keys::kVocabulary, "{}"), ContainsSubstring("format"));
}

TEST_CASE("a checkpoint whose configuration is of the model alone is read: nothing else is needed") {
  EvaluationBench bench;
  const CheckpointFile good(checkpoint_path(bench.options.out, CheckpointKind::best));
  Metadata metadata = good.metadata();
  std::string& toml = metadata.find(metadata_keys::kConfig)->second;
  const std::size_t model = toml.find("[model]");
  REQUIRE(model != std::string::npos);
  toml = toml.substr(model, toml.find("\n[", model) - model);
  REQUIRE(toml.find("rate") == std::string::npos);
  const auto path = bench / "model-only.safetensors";
  save_checkpoint(path, bench.runtime.backend(), named_tensors(bench.trained->store()), metadata);
  TrainedModel model_only(path, CheckpointKind::newest, bench.runtime);
  CHECK(model_only.store().parameters().size() == bench.trained->store().parameters().size());
  toml = "[schedule]\n" + toml;
  save_checkpoint(path, bench.runtime.backend(), named_tensors(bench.trained->store()), metadata);
  CHECK_NOTHROW(TrainedModel(path, CheckpointKind::newest, bench.runtime));
  // What is wrong with it is not put on values that nobody gave.
  constexpr std::string_view kLayers = "\nlayers = ";
  toml.insert(toml.find(kLayers) + kLayers.size(), "3000000000");
  save_checkpoint(path, bench.runtime.backend(), named_tensors(bench.trained->store()), metadata);
  CHECK_THAT(message_of<Error>([&] { TrainedModel(path, CheckpointKind::newest, bench.runtime); }),
             ContainsSubstring("layers") && ContainsSubstring("the metadata of") && !ContainsSubstring("--set"));
}

}  // namespace
}  // namespace engram::harness::evaluator_test

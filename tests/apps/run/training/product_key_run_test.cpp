/// Training, evaluation and generation of the product-key family through the program's own parts: what the model's
/// tests (tests/nn/product_key_transformer_test.cpp) cannot see of windows, checkpoints and commands.

#include <array>
#include <map>

#include "apps/data/blocks/shuffled_windows.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/generation/token_stream.hpp"
#include "apps/run/training/session.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/apps/run/run_metrics.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::product_key_run_test {
namespace {

std::string host_config() {
  return R"([model]
family = "product_key"
layers = 2
width = 16
heads = 2
position_rows = 24
[optimizer]
kind = "adam"
clip = 5
[schedule]
rate = 0.01
steps = 24
[training]
batch = 4
block = 20
validate_every = 3
validate_blocks = 2
report_every = 5
checkpoint_every = 10
seed = 11
)";
}

TrainingRunOptions host_run(const RunFolder& folder, const std::string& out, std::vector<std::string> overrides = {}) {
  TrainingRunOptions options = run_options(folder, out);
  options.config = put_file(folder / "host.toml", host_config());
  options.overrides = std::move(overrides);
  return options;
}

/// A trained model in f64 and the text that it is measured on.
struct Trained {
  RunFolder folder;
  TrainingRunOptions options;
  Runtime runtime{{}, 1};
  std::unique_ptr<TrainedModel> model;
  data::DataSet data = data::DataSet::open(folder.data());

  explicit Trained(std::vector<std::string> overrides = {}) : options(host_run(folder, "run", std::move(overrides))) {
    run_training(options, never());
    model = std::make_unique<TrainedModel>(options.out, CheckpointKind::newest, runtime, DType::f64);
  }
  data::TokenView test() const { return data.split("test"); }
  /// Loss by the target's place.
  std::map<std::int64_t, double> losses(const SplitEvaluationOptions& with) {
    std::map<std::int64_t, double> found;
    evaluate_split(*model, test(), with,
                   {.found = [&](std::int64_t token, double nll) { CHECK(found.emplace(token, nll).second); }});
    return found;
  }
  /// Of one target after a window that begins at `first`, by generation.
  double loss_after(std::int64_t first, std::int64_t target) {
    TokenStream stream({model->model(), runtime, DType::f64}, 24);
    std::vector<std::int32_t> window;
    for (std::int64_t i = first; i < target; ++i) window.push_back(test()[i]);
    return -stream.append(window)[static_cast<std::size_t>(test()[target])];
  }
};

TEST_CASE("product-key run: stopped and resumed it is bit-identical to one that is not", "[product-key][night]") {
  const RunFolder folder;
  const std::vector<std::vector<std::string>> runs{
      {"model.dropout=0.2", "model.attention_dropout=0.1", "training.split=2", "training.shuffled_windows=true"},
      {"model.dropout=0.2", "model.pre_norm=true", "model.activation=relu", "training.weight_average=true",
       "training.validate_every=2"}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    INFO(i);
    const TrainingRunOptions whole = host_run(folder, text("whole", i), runs[i]);
    run_training(whole, never());
    for (const int steps : {1, 7, 19}) {
      TrainingRunOptions parts = host_run(folder, text("parts", i, ".", steps), runs[i]);
      CHECK_THROWS_AS(run_training(parts, after_steps(steps)), Interrupted);
      parts.resume = true;
      run_training(parts, never());
      CHECK(newest_checkpoint(parts) == newest_checkpoint(whole));
      CHECK(get_file(checkpoint_path(parts.out, CheckpointKind::best)) ==
            get_file(checkpoint_path(whole.out, CheckpointKind::best)));
    }
  }
}

TEST_CASE("product-key run: training lowers the loss, in either order of the text", "[product-key][night]") {
  const RunFolder folder(20000);
  for (const char* shuffled : {"false", "true"})
    for (const char* pre_norm : {"false", "true"}) {
      CAPTURE(shuffled, pre_norm);
      const TrainingRunOptions options =
          host_run(folder, text("run-", shuffled, pre_norm),
                   {text("training.shuffled_windows=", shuffled), text("model.pre_norm=", pre_norm),
                    "schedule.steps=120", "training.report_every=20", "training.validate_every=1000"});
      run_training(options, never());
      const std::vector<double> nll = metrics(options.out, "nll");
      REQUIRE(nll.size() >= 6);
      CHECK(nll.back() < 0.75 * nll.front());
    }
}

TEST_CASE("product-key run: pieces of a batch are the batch", "[product-key]") {
  const RunFolder folder;
  std::vector<std::vector<double>> nll;
  for (const char* split : {"1", "2", "4"}) {
    TrainingRunOptions options = host_run(folder, text("split", split), {text("training.split=", split)});
    options.dtype = DType::f64;
    run_training(options, never());
    nll.push_back(metrics(options.out, "nll"));
  }
  for (const auto& other : {nll[1], nll[2]}) {
    REQUIRE(other.size() == nll[0].size());
    for (std::size_t i = 0; i < other.size(); ++i) CHECK(other[i] == Approx(nll[0][i]).epsilon(1e-9));
  }
}

TEST_CASE("product-key run: a step trains on windows from all of the text", "[product-key]") {
  const RunFolder folder;
  const data::DataSet data = data::DataSet::open(folder.data());
  const RunConfig config =
      resolved_config(parse_run_config(host_config(), "test", {"training.shuffled_windows=true"}), data);
  Runtime runtime({}, 1, config.training.seed);
  TrainingSession session(config, data, runtime, DType::f64);
  const data::TokenView tokens = data.split("train");
  CHECK(session.reader->dropped() == (tokens.size() - 1) % 20);
  const data::ReaderState start = session.reader->state();
  data::Block block;
  session.reader->next(block);
  session.reader->restore(start);
  const std::int64_t windows = (tokens.size() - 1) / 20;
  for (std::int64_t row = 0; row < 4; ++row) {
    const std::int64_t first = 20 * data::shuffled(row, windows, config.training.seed, 0);
    for (std::int64_t i = 0; i < 20; ++i) {
      CHECK(block.inputs[static_cast<std::size_t>(row * 20 + i)] == tokens[first + i]);
      CHECK(block.targets[static_cast<std::size_t>(row * 20 + i)] == tokens[first + i + 1]);
    }
  }
  Trainer untrained(config, *session.model, session.store, runtime);
  const double before = untrained.accumulate(block).nll;
  CHECK(session.step().nll == Approx(before).epsilon(1e-12));
}

TEST_CASE("product-key run: every way of evaluation reads windows from nothing", "[product-key]") {
  Trained trained;
  const std::int64_t total = trained.test().size();
  // Side by side: the first token of every window is not scored.
  const auto apart = trained.losses({.window = 12, .apart = true});
  CHECK(static_cast<std::int64_t>(apart.size()) == total - (total + 11) / 12);
  for (const std::int64_t target : {1, 11, 13, 23, 25, 59}) {
    CAPTURE(target);
    CHECK(apart.at(target) == Approx(trained.loss_after(target / 12 * 12, target)).epsilon(1e-11));
  }
  CHECK(apart.find(12) == apart.end());
  // One stream of blocks: the same, and the first tokens as well, after the whole window before them.
  const auto exact = trained.losses({.exact = true, .block = 12});
  CHECK(static_cast<std::int64_t>(exact.size()) == total - 1);
  for (const auto& [token, loss] : apart) CHECK(exact.at(token) == Approx(loss).epsilon(1e-11));
  CHECK(exact.at(24) == Approx(trained.loss_after(12, 24)).epsilon(1e-11));
  CHECK_THROWS_WITH(trained.losses({.exact = true, .batch = 2}),
                    ContainsSubstring("one stream") && ContainsSubstring("--window"));
  // Sliding by one: every token after the eleven before it, and one more.
  const auto sliding = trained.losses({.window = 12, .stride = 1});
  CHECK(static_cast<std::int64_t>(sliding.size()) == total - 1);
  for (const std::int64_t target : {1, 5, 12, 13, 100})
    CHECK(sliding.at(target) ==
          Approx(trained.loss_after(std::max<std::int64_t>(0, target - 12), target)).epsilon(1e-11));
  // Ten streams lose what does not divide, and the first token of each.
  CHECK(static_cast<std::int64_t>(trained.losses({}).size()) == (total / 10 - 1) * 10);
  CHECK_THROWS_WITH(trained.losses({.window = 40}), ContainsSubstring("at most 24 tokens"));
  // Generation reads as many tokens as training did, anew for every token.
  CHECK(TokenStream::window_of(trained.model->config()) == 20);
  TokenStream stream({trained.model->model(), trained.runtime, DType::f64}, 12);
  for (std::int64_t i = 0; i < 30; ++i) {
    const std::array<std::int32_t, 1> token{trained.test()[i]};
    const std::span<const double> next = stream.append(token);
    CHECK(sliding.at(i + 1) == Approx(-next[static_cast<std::size_t>(trained.test()[i + 1])]).epsilon(1e-11));
  }
}

TEST_CASE("product-key run: training on every device follows the CPU, captured steps too", "[product-key]") {
  const RunFolder folder;
  const data::DataSet data = data::DataSet::open(folder.data());
  const RunConfig config =
      resolved_config(parse_run_config(host_config(), "test",
                                       {"training.batch=2", "training.block=12", "training.shuffled_windows=true"}),
                      data);
  Runtime host({}, 1, config.training.seed);
  TrainingSession reference(config, data, host, DType::f32);
  std::vector<double> expected;
  for (int i = 0; i < 10; ++i) expected.push_back(reference.step().nll);
  for (const Device device : other_devices()) {
    Runtime runtime(device, 0, config.training.seed);
    TrainingSession session(config, data, runtime, DType::f32);
    for (const double nll : expected) CHECK(session.step().nll == Approx(nll).epsilon(1e-5));
    CHECK(session.trainer.replayed() > 0);
  }
}

TEST_CASE("product-key run: what other families have is refused by name", "[product-key]") {
  const RunFolder folder;
  CHECK_THROWS_WITH(run_training(host_run(folder, "refused", {"training.block=25"}), never()),
                    ContainsSubstring("position_rows must be at least 25"));
  CHECK_THROWS_WITH(run_training(host_run(folder, "refused", {"training.extension=2"}), never()),
                    ContainsSubstring("training.extension") && ContainsSubstring("of transformer_xl"));
  CHECK_THROWS_WITH(run_training(host_run(folder, "refused", {"model.cutoffs=3"}), never()),
                    ContainsSubstring("model.cutoffs") && ContainsSubstring("no key of family product_key"));
  CHECK_THROWS_WITH(run_training(host_run(folder, "refused", {"model.activation=tanh"}), never()),
                    ContainsSubstring("\"relu\", \"gelu\"") && ContainsSubstring("'tanh'"));
  CHECK_FALSE(std::filesystem::exists(folder / "refused"));

  const TrainingRunOptions options = host_run(folder, "run", {"schedule.steps=2"});
  run_training(options, never());
  const std::string run = options.out.string(), data = folder.data().string();
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& what) {
    CAPTURE(arguments);
    const ProcessResult result = run_engram(arguments);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    CHECK_THAT(result.err, ContainsSubstring(what) && ContainsSubstring("product_key"));
  };
  refused({"attention", run, "--text", "go", "--layer", "1"}, "--layer is for models of the family all_attention");
  refused({"spans", run}, "all_attention");
  refused({"lengths", run, "--data", data, "--lengths", "4"}, "lengths: runs must be of family transformer_xl");
  refused({"export", run, "--to", "transfo-xl", "--out", (folder / "out").string()},
          "export: the model must be of family transformer_xl");
  refused({"evaluate", run, "--data", data, "--mem-len", "4"}, "for models of family transformer_xl");
}

TEST_CASE("command line: a run of the product-key family from keys to recl", "[product-key][night]") {
  const RunFolder folder;
  const TrainingRunOptions options = host_run(folder, "run"), other = host_run(folder, "other", {"training.seed=3"});
  run_training(options, never());
  run_training(other, never());
  const std::string run = options.out.string(), data = folder.data().string();
  const auto output = [](const std::vector<std::string>& arguments) {
    CAPTURE(arguments);
    const ProcessResult result = run_engram(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return result.out;
  };
  const auto object = [&](std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    return nlohmann::json::parse(output(arguments));
  };
  CHECK_THAT(output({"keys", "product_key"}), ContainsSubstring("activation = \"gelu\"") &&
                                                  ContainsSubstring("shuffled_windows = false") &&
                                                  ContainsSubstring("position_rows"));
  const nlohmann::json apart =
      object({"evaluate", run, "--data", data, "--split", "test", "--window", "20", "--apart"});
  CHECK(apart.at("way") == "windows");
  CHECK(apart.at("ppl_window20").get<double>() == Approx(std::exp2(apart.at("bpc").get<double>())).epsilon(1e-6));
  CHECK(apart.at("tokens").get<std::int64_t>() < apart.at("tokens_in_split").get<std::int64_t>());
  CHECK_THAT(output({"evaluate", run, "--data", data, "--window", "20", "--apart"}),
             ContainsSubstring("ppl_window20 "));
  for (const std::vector<std::string>& wrong :
       {std::vector<std::string>{"--apart"}, {"--apart", "--window", "20", "--stride", "2"}}) {
    std::vector<std::string> arguments{"evaluate", run, "--data", data};
    arguments.insert(arguments.end(), wrong.begin(), wrong.end());
    CHECK_THAT(run_engram(arguments).err, ContainsSubstring("--apart is for --window"));
  }
  const std::vector<std::string> generate{"generate", run, "--prompt", "an age", "--length", "30"};
  CHECK(output(generate) == output(generate));
  CHECK(output(generate).size() >= 36);
  const nlohmann::json recl = object({"recl", run, other.out.string(), "--data", data, "--split", "test", "--first",
                                      "4", "--step", "8", "--longest", "30", "--positions", "20"});
  CHECK(recl.dump().find("null") == std::string::npos);
}

}  // namespace
}  // namespace engram::harness::product_key_run_test

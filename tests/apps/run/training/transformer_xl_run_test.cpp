/// Training, evaluation and generation of Transformer-XL through the program's own parts: what the model's tests
/// (tests/nn/transformer_xl_*) cannot see of segments, memories and checkpoints.

#include <array>
#include <map>
#include <numeric>

#include "apps/data/blocks/segment_evaluation.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/generation/token_stream.hpp"
#include "apps/run/training/session.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "nn/checkpoint.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/apps/run/run_metrics.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"

namespace engram::harness::transformer_xl_run_test {
namespace {

std::string xl_config() {
  return R"([model]
family = "transformer_xl"
layers = 2
width = 16
heads = 2
inner = 24
memory = 24
init_deviation = 0.2
[optimizer]
kind = "adam"
clip = 0.25
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

TrainingRunOptions xl_run(const RunFolder& folder, const std::string& out, std::vector<std::string> overrides = {}) {
  TrainingRunOptions options = run_options(folder, out);
  options.config = put_file(folder / "xl.toml", xl_config());
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

  explicit Trained(std::vector<std::string> overrides = {}, const ContextOptions& context = {})
      : options(xl_run(folder, "run", std::move(overrides))) {
    run_training(options, never());
    load(context);
  }
  void load(const ContextOptions& context) {
    model = std::make_unique<TrainedModel>(options.out, CheckpointKind::newest, runtime, DType::f64,
                                           [&](ModelOptions& with) { context.apply(with, "test"); });
  }
  data::TokenView test() const { return data.split("test"); }
  /// Loss by the target's place.
  std::map<std::int64_t, double> losses(const SplitEvaluationOptions& with) {
    std::map<std::int64_t, double> found;
    evaluate_split(*model, test(), with,
                   {.found = [&](std::int64_t token, double nll) { CHECK(found.emplace(token, nll).second); }});
    return found;
  }
};

double largest_difference(const std::map<std::int64_t, double>& a, const std::map<std::int64_t, double>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (const auto& [token, loss] : a) largest = std::max(largest, std::abs(loss - b.at(token)));
  return largest;
}

TEST_CASE("transformer-xl: auxiliary losses train, and the reported loss is the model's own", "[auxiliary]") {
  const RunFolder folder;
  const std::vector<std::string> auxiliary{"model.intermediate_losses=true", "model.second_target=0.5"};
  std::map<std::string, std::vector<double>> losses;
  for (const char* name : {"plain", "auxiliary", "split"}) {
    std::vector<std::string> overrides{"schedule.steps=8", "training.report_every=1", "training.validate_every=8"};
    if (name != std::string("plain")) overrides.insert(overrides.end(), auxiliary.begin(), auxiliary.end());
    if (name == std::string("split")) overrides.emplace_back("training.split=2");
    const TrainingRunOptions options = xl_run(folder, name, overrides);
    run_training(options, never());
    losses[name] = metrics(options.out, "nll");
  }
  REQUIRE(losses["plain"].size() >= 8);
  CHECK(losses["auxiliary"][0] == losses["plain"][0]);
  CHECK(losses["auxiliary"][1] != losses["plain"][1]);
  for (std::size_t i = 0; i < losses["split"].size(); ++i)
    CHECK(losses["split"][i] == Approx(losses["auxiliary"][i]).epsilon(1e-4));
}

TEST_CASE("transformer-xl: a run that is stopped and resumed is bit-identical to one that is not") {
  const RunFolder folder;
  // A rate that changes next to nothing: validations stop improving, so that the rate falls and weights are averaged.
  const std::vector<std::vector<std::string>> runs{
      {"model.dropout=0.2", "model.attention_dropout=0.1", "model.word_dropout=0.3", "training.split=2",
       "training.extension=8", "training.drawn_lengths=true"},
      {"schedule.rate=1e-9", "schedule.decay=plateau", "training.weight_average=true", "training.validate_every=2",
       "model.dropout=0.2", "model.dropout_over_time=true", "model.init=uniform", "training.latest_half=true"},
      // The first of two layers predicts for a quarter of the training.
      {"model.intermediate_losses=true", "model.second_target=0.5", "model.dropout=0.2", "training.split=2"}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    INFO(i);
    const TrainingRunOptions whole = xl_run(folder, text("whole", i), runs[i]);
    run_training(whole, never());
    // Of the second run also where the mean of the weights begins: it has no update then.
    for (const int steps : i == 1 ? std::vector<int>{1, 12, 14, 16, 19} : std::vector<int>{1, 7, 19}) {
      TrainingRunOptions parts = xl_run(folder, text("parts", i, ".", steps), runs[i]);
      CHECK_THROWS_AS(run_training(parts, after_steps(steps)), Interrupted);
      parts.resume = true;
      run_training(parts, never());
      CHECK(newest_checkpoint(parts) == newest_checkpoint(whole));
      CHECK(get_file(checkpoint_path(parts.out, CheckpointKind::best)) ==
            get_file(checkpoint_path(whole.out, CheckpointKind::best)));
    }
    const std::vector<double> rates = metrics(whole.out, "learning_rate");
    CHECK((rates.front() > rates.back()) == (i == 1));
    const CheckpointFile file(checkpoint_path(whole.out, CheckpointKind::newest));
    CHECK(file.has("average/embedding.table.weight_mean") == (i == 1));
  }
}

TEST_CASE("transformer-xl: without a memory a resumed run knows how much it has read, too") {
  const RunFolder folder;
  const std::vector<std::string> without{"model.memory=0"};
  const TrainingRunOptions whole = xl_run(folder, "whole", without);
  run_training(whole, never());
  TrainingRunOptions parts = xl_run(folder, "parts", without);
  CHECK_THROWS_AS(run_training(parts, after_steps(7)), Interrupted);
  parts.resume = true;
  run_training(parts, never());
  CHECK(newest_checkpoint(parts) == newest_checkpoint(whole));
}

TEST_CASE("transformer-xl: a model whose weights were averaged is read as their mean") {
  const RunFolder folder;
  const TrainingRunOptions options =
      xl_run(folder, "run",
             {"schedule.rate=1e-3", "training.weight_average=true", "training.validate_every=1",
              "training.validate_blocks=1", "schedule.decay=linear"});
  run_training(options, never());
  const CheckpointFile file(checkpoint_path(options.out, CheckpointKind::newest));
  const nlohmann::json state = nlohmann::json::parse(file.metadata().at(std::string(metadata_keys::kRun)));
  const auto updates = state.at("average").at("updates").get<std::int64_t>();
  REQUIRE(updates > 1);
  Runtime runtime({}, 1);
  TrainedModel trained(options.out, CheckpointKind::newest, runtime);
  CHECK(trained.averaged_over() == updates);
  const TrainedModel best(options.out, CheckpointKind::best, runtime);
  CHECK(best.averaged_over() > 0);
  CHECK(best.averaged_over() <= updates);
  const Tensor bias = trained.store().find("output.bias")->value();
  std::vector<float> mean(static_cast<std::size_t>(bias.count())), sum(mean.size()), last(mean.size());
  runtime.backend().copy(mean.data(), bias.raw(), bias.bytes(), CopyKind::device_to_host);
  HeapAllocator heap(runtime.backend());
  const Tensor sums(bias.shape(), DType::f32, bias.device(), heap),
      values(bias.shape(), DType::f32, bias.device(), heap);
  LoadRules rules{.may_be_absent = {},
                  .may_be_ignored = {"optimizer/", "state/", "average/", "embedding", "layers", "position_biases"}};
  rules.may_be_ignored.push_back("output");
  const std::array<NamedTensor, 2> wanted{{{"average/output.bias.weight_mean", sums}, {"output.bias", values}}};
  file.load(runtime.backend(), wanted, rules);
  runtime.backend().copy(sum.data(), sums.raw(), sums.bytes(), CopyKind::device_to_host);
  runtime.backend().copy(last.data(), values.raw(), values.bytes(), CopyKind::device_to_host);
  for (std::size_t i = 0; i < mean.size(); ++i) CHECK(mean[i] == sum[i]);
  CHECK(mean != last);
}

TEST_CASE("transformer-xl: pieces of a batch are the batch") {
  const RunFolder folder;
  std::vector<std::vector<double>> nll;
  for (const char* split : {"1", "2", "4"}) {
    TrainingRunOptions options = xl_run(folder, text("split", split), {text("training.split=", split)});
    options.dtype = DType::f64;
    run_training(options, never());
    nll.push_back(metrics(options.out, "nll"));
  }
  for (const auto& other : {nll[1], nll[2]}) {
    REQUIRE(other.size() == nll[0].size());
    for (std::size_t i = 0; i < other.size(); ++i) CHECK(other[i] == Approx(nll[0][i]).epsilon(1e-9));
  }
}

TEST_CASE("transformer-xl: with same_length a token's loss depends neither on blocks nor on streams") {
  for (const Visibility visibility : {Visibility::last_memory, Visibility::last_memory_plus_1}) {
    ContextOptions context;
    context.visibility = visibility;
    context.memory = 13;
    context.clamp = 9;
    Trained trained({}, context);
    const auto one = trained.losses({.exact = true, .batch = 1, .block = 50});
    CHECK(static_cast<std::int64_t>(one.size()) == trained.test().size() - 1);
    for (const int block : {1, 7, 64})
      CHECK(largest_difference(one, trained.losses({.exact = true, .batch = 1, .block = block})) < 1e-11);
    CHECK(largest_difference(one, trained.losses({.exact = true, .batch = 4, .block = 20})) < 1e-11);
    // Generation reads one token after the other.
    TokenStream stream({trained.model->model(), trained.runtime, DType::f64});
    double largest = 0;
    for (std::int64_t i = 0; i + 1 < 60; ++i) {
      const std::array<std::int32_t, 1> token{trained.test()[i]};
      const std::span<const double> next = stream.append(token);
      largest = std::max(largest, std::abs(one.at(i + 1) + next[static_cast<std::size_t>(trained.test()[i + 1])]));
    }
    CHECK(largest < 1e-11);
  }
}

TEST_CASE("transformer-xl: what depends on blocks is measured in one stream, and says so") {
  Trained trained;
  const auto paper = trained.losses({.exact = true});
  CHECK(static_cast<std::int64_t>(paper.size()) == trained.test().size() - 1);
  CHECK_THROWS_AS(trained.losses({.exact = true, .batch = 2}), UsageError);
  // Ten streams lose what does not divide, and the first token of each.
  CHECK(static_cast<std::int64_t>(trained.losses({}).size()) == (trained.test().size() / 10 - 1) * 10);
  ContextOptions longer;
  longer.memory = 1000;
  trained.load(longer);
  const auto all = trained.losses({.exact = true, .block = 20});
  CHECK(largest_difference(all, trained.losses({.exact = true, .block = 64})) < 1e-11);
  CHECK(largest_difference(all, paper) > 1e-6);
}

TEST_CASE("transformer-xl: every sliding window is read from nothing") {
  for (const char* positions : {"relative", "absolute_sinusoidal", "absolute_learned"}) {
    Trained trained({"model.memory=0", "training.extension=4", "training.block=8", text("model.positions=", positions),
                     std::string_view(positions) == "absolute_learned" ? "model.position_rows=12" : "model.clamp=0"});
    const auto stride_1 = trained.losses({.window = 12, .stride = 1});
    CHECK(static_cast<std::int64_t>(stride_1.size()) == trained.test().size() - 1);
    CHECK(largest_difference(stride_1, trained.losses({.batch = 1, .window = 12, .stride = 1})) < 1e-12);
    for (const std::int64_t target : {1, 5, 12, 13, 100}) {
      TokenStream stream({trained.model->model(), trained.runtime, DType::f64});
      std::vector<std::int32_t> window;
      for (std::int64_t i = std::max<std::int64_t>(0, target - 12); i < target; ++i)
        window.push_back(trained.test()[i]);
      const std::span<const double> next = stream.append(window);
      CHECK(stride_1.at(target) == Approx(-next[static_cast<std::size_t>(trained.test()[target])]).epsilon(1e-11));
    }
    // A model that remembers nothing reads its window anew for every token that it generates.
    CHECK(TokenStream::window_of(trained.model->config()) == 12);
    TokenStream stream({trained.model->model(), trained.runtime, DType::f64}, 12);
    for (std::int64_t i = 0; i < 30; ++i) {
      const std::array<std::int32_t, 1> token{trained.test()[i]};
      const std::span<const double> next = stream.append(token);
      CHECK(stride_1.at(i + 1) == Approx(-next[static_cast<std::size_t>(trained.test()[i + 1])]).epsilon(1e-11));
    }
    const auto stride_5 = trained.losses({.window = 12, .stride = 5});
    CHECK(stride_5.size() == stride_1.size());
    CHECK(largest_difference(stride_5, stride_1) > 1e-9);
  }
}

TEST_CASE("transformer-xl: half of the loss is the mean over the latest halves of segments") {
  const RunFolder folder;
  const data::DataSet data = data::DataSet::open(folder.data());
  for (const char* way : {"training.latest_half=true", "training.extension=20"}) {
    INFO(way);
    const RunConfig config = resolved_config(parse_run_config(xl_config(), "test", {way}), data);
    Runtime runtime({}, 1, config.training.seed);
    TrainingSession session(config, data, runtime, DType::f64);
    // The same tokens through the evaluator, before any update.
    const data::TokenView tokens = data.split("train");
    data::SegmentEvaluation plan(tokens, 20, 0, 4);
    ModelPast past = session.model->training_past(runtime.backend(), runtime.memory(), 4, DType::f64);
    std::map<std::int64_t, double> losses;
    evaluate(session.placed(), plan, past, {.found = [&](std::int64_t token, double nll) { losses[token] = nll; }});
    const bool half = config.training.latest_half;
    double sum = 0;
    for (std::int64_t row = 0; row < 4; ++row)
      for (std::int64_t column = half ? 10 : 0; column < 20; ++column)
        sum += losses.at(row * (tokens.size() / 4) + column + 1);
    CHECK(session.step().nll == Approx(sum / (4 * (half ? 10 : 20))).epsilon(1e-12));
    // With an extension the next block is fed the last 20 tokens again, and scores as many new ones.
    CHECK(std::isfinite(session.step().nll));
  }
}

TEST_CASE("transformer-xl: training on every device follows the CPU, captured steps too") {
  const RunFolder folder;
  const data::DataSet data = data::DataSet::open(folder.data());
  // Drawn lengths: steps for one length are captured before a longer one comes.
  const auto [lengths, steps] =
      GENERATE(std::pair("training.drawn_lengths=false", 14), std::pair("training.drawn_lengths=true", 60));
  CAPTURE(lengths);
  const RunConfig config = resolved_config(
      parse_run_config(xl_config(), "test", {"training.batch=2", "training.block=12", "model.clamp=16", lengths}),
      data);
  Runtime host({}, 1, config.training.seed);
  TrainingSession reference(config, data, host, DType::f32);
  std::vector<double> expected;
  for (int i = 0; i < steps; ++i) expected.push_back(reference.step().nll);
  for (const Device device : other_devices()) {
    Runtime runtime(device, 0, config.training.seed);
    TrainingSession session(config, data, runtime, DType::f32);
    for (const double nll : expected) CHECK(session.step().nll == Approx(nll).epsilon(1e-5));
    // The memory's two buffers take turns, so that every second step is alike.
    CHECK(session.trainer.replayed() > 0);
  }
}

TEST_CASE("transformer-xl: options of segments are refused for the other family") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  options.overrides = {"schedule.steps=1"};
  run_training(options, never());
  Runtime runtime({}, 1);
  ContextOptions context;
  context.memory = 3;
  CHECK_THROWS_AS(TrainedModel(options.out, CheckpointKind::newest, runtime, DType::f32,
                               [&](ModelOptions& model) { context.apply(model, "evaluate"); }),
                  UsageError);
  CHECK_THROWS_AS(run_training(xl_run(folder, "refused", {"model.memory=0", "model.visibility=last_memory"}), never()),
                  UsageError);
  CHECK_THROWS_AS(
      run_training(xl_run(folder, "refused", {"model.positions=absolute_learned", "model.position_rows=20"}), never()),
      UsageError);
  CHECK_THROWS_AS(
      run_training(xl_run(folder, "refused", {"training.extension=2", "training.latest_half=true"}), never()),
      UsageError);
  CHECK_FALSE(std::filesystem::exists(folder / "refused"));
}

}  // namespace
}  // namespace engram::harness::transformer_xl_run_test

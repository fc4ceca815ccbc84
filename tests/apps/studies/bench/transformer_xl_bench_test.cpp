/// `engram bench` with a Transformer-XL. Nothing here compares times with expectations.

#include "apps/studies/bench/bench_report.hpp"
#include "apps/studies/bench/inference_bench.hpp"
#include "apps/studies/bench/training_bench.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "nn/models/model_options.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::transformer_xl_bench_test {
namespace {

BenchCase small_case() {
  BenchCase bench{"small", {}, {}};
  bench.config.model.family = ModelFamily::transformer_xl;
  TransformerXlOptions& model = bench.config.model.transformer_xl;
  model.vocabulary = 9;
  model.layers = 2;
  model.width = 8;
  model.heads = 2;
  model.inner = 16;
  model.memory = 6;
  model.dropout = 0.1;
  bench.config.optimizer.kind = OptimizerKind::adam;
  bench.config.optimizer.clip_kind = ClipKind::global;
  bench.config.training.batch = 3;
  bench.config.training.block = 4;
  return bench;
}

MachineLimits made_up_limits() {
  MachineLimits limits;
  limits.flops_per_second = limits.bytes_per_second = limits.exponentials_per_second = 1e9;
  return limits;
}

BenchResult bench_on_fresh_runtime(const BenchCase& bench, std::int64_t steps) {
  Runtime runtime;
  return bench_training(bench, made_up_limits(), runtime, steps);
}

const char* const kConfig = R"([model]
family = "transformer_xl"
vocabulary = 9
layers = 2
width = 8
heads = 2
inner = 16
memory = 6
[optimizer]
kind = "adam"
[schedule]
rate = 0.01
steps = 10
[training]
batch = 3
block = 4
)";

}  // namespace

TEST_CASE("transformer-xl bench: counts steps, tokens, parameters and kernels, with formulas of the family") {
  const BenchResult result = bench_on_fresh_runtime(small_case(), 3);
  CHECK(result.seconds.size() == 3);
  CHECK(result.tokens == 12);
  CHECK(result.cost.window == 6 + 2.5);
  // Table, u and v, two layers of (five projections, feed-forward, two norms), output bias.
  constexpr std::int64_t kLayer = 5 * 64 + 2 * 8 * 16 + 16 + 8 + 4 * 8;
  CHECK(result.parameters == 9 * 8 + 2 * 8 + 2 * kLayer + 9);
  CHECK(result.parameter_bytes >= static_cast<std::size_t>(4 * 4 * result.parameters));
  const auto& totals = result.kernels.totals();
  CHECK(totals.at("attention_forward").calls == 2 * 3);
  CHECK(totals.at("project_past_forward").calls == 2 * 3);
  CHECK(totals.at("project_past_backward").calls == 2 * 3);
  CHECK(totals.at("dropout").calls > 0);
  CHECK(result.kernel_flops("matmul") == Approx(12 * result.cost.training.products));
  CHECK(result.kernel_flops("project_past_forward") == 12 * 2 * 4 * 6 * 64 / 4);
  CHECK(result.kernel_exponentials("attention_forward") == 12 * 2 * 2 * 8.5);
  CHECK(result.kernel_exponentials("cross_entropy") == 12 * 9);
  CHECK(result.kernel_flops("relu_dropout_forward") == 0);
  // What has no formula has the bytes of its tensors: [3, 4, 16] in and out, and the bias, twice.
  MachineLimits limits = made_up_limits();
  limits.bytes_per_second = 1;
  CHECK(result.kernel_floor("relu_dropout_forward", limits) == 2 * (2 * 3 * 4 * 16 + 16) * 4);
  CHECK(result.least_seconds == Approx(12 * result.cost.training.total() / 1e9));
}

TEST_CASE("transformer-xl bench: memories are full before a step is timed") {
  // Far longer than what warming up alone would see. The kernel that takes a segment into a memory moves all of it.
  BenchCase bench = small_case();
  bench.config.model.transformer_xl.memory = 400;
  const BenchResult result = bench_on_fresh_runtime(bench, 1);
  CHECK(result.kernels.totals().at("shift_cache").bytes >= 2 * 2 * 3 * 400 * 8 * 4);
}

TEST_CASE("transformer-xl bench: with an extension, tokens that are read again have no loss") {
  BenchCase bench = small_case();
  bench.config.training.extension = 2;
  const BenchResult result = bench_on_fresh_runtime(bench, 1);
  CHECK(result.tokens == 12);
  CHECK(result.cost.window == 6 + 3.5);
  CHECK(result.cost.training.attention_forward == Approx(2 * 6 * 9.5 * 8 * 6 / 4));
}

TEST_CASE("transformer-xl bench: reports say the sizes of this family, and have no spans") {
  const BenchCase bench = small_case();
  const BenchResult result = bench_on_fresh_runtime(bench, 1);
  CHECK_THAT(table_of(bench, result, made_up_limits()),
             ContainsSubstring("L=2 d=8 H=2 F=16 S=4 B=3, memory 6 (mean 8.5 positions)") &&
                 ContainsSubstring("project_past_backward"));
  const nlohmann::json json = json_of(bench, result, made_up_limits());
  CHECK(json.at("family") == "transformer_xl");
  CHECK(json.at("memory_positions") == 6);
  CHECK(json.at("mean_visible_positions") == 8.5);
  CHECK_FALSE(json.contains("spans"));
  CHECK(json.at("flops_per_token").get<double>() == Approx(result.cost.training.total()));
  double share = 0;
  for (const auto& kernel : json.at("kernels")) share += kernel.at("share").get<double>();
  CHECK(share == Approx(1));
}

TEST_CASE("transformer-xl bench: evaluation through caches is timed with its own memory and with longer ones") {
  const BenchCase bench = small_case();
  Runtime runtime;
  const InferenceResult result = bench_inference(bench, made_up_limits(), runtime, 2);
  CHECK(result.window == 8.5);
  REQUIRE(result.blocks.size() == 3);
  constexpr std::array kMemories{6.0, 16.0, 64.0};
  for (std::size_t i = 0; i < 3; ++i) {
    const BlockInference& one = result.blocks[i];
    CHECK(one.block == 4);
    CHECK(one.cached_blocks == kMemories[i] / 4);
    CHECK(one.forward_seconds > 0);
    CHECK(one.frozen_seconds > 0);
    // Two layers: the memory's keys and values, and the keys of M + S distances, which three streams share.
    CHECK(one.forward_flops - one.frozen_flops ==
          Approx(2 * (4 * kMemories[i] * 64 / 4 + 2 * (kMemories[i] + 4) * 64 / (3 * 4))));
  }
  // One token sees the memory and itself.
  CHECK(result.token_bytes == 4 * (2 * (4 * 64 + 2 * 8 * 16 + 3 * 7 * 8) + 8 * 9));
  CHECK(result.generation.at(0).token_seconds > 0);
  CHECK(result.generation.at(1).streams == 64);
  const nlohmann::json json = json_of(bench, result);
  CHECK(json.at("memory_positions") == 6);
  CHECK(json.at("blocks").size() == 3);
  CHECK_THAT(table_of(bench, result), ContainsSubstring("memory 6") && ContainsSubstring("generation"));

  BenchCase none = small_case();
  none.config.model.transformer_xl.memory = 0;
  CHECK(bench_inference(none, made_up_limits(), runtime, 1).blocks.size() == 1);
  BenchCase quarter = small_case();
  quarter.config.model.transformer_xl.memory = 16;
  CHECK(bench_inference(quarter, made_up_limits(), runtime, 1).blocks.size() == 2);
}

TEST_CASE("transformer-xl bench: spans are refused") {
  BenchCase bench = small_case();
  bench.spans = {8};
  CHECK_THROWS_AS(bench_on_fresh_runtime(bench, 1), UsageError);
  bench = small_case();
  bench.config.model.transformer_xl.vocabulary = 0;
  CHECK_THROWS_AS(bench_on_fresh_runtime(bench, 1), UsageError);
}

TEST_CASE("command line: bench of a Transformer-XL", "[night]") {
  const TemporaryFolder folder;
  const std::string config = (folder / "config.toml").string();
  put_file(config, kConfig);
  const std::vector<std::string> plain{"bench", "--config", config, "--steps", "1", "--product-size", "32"};
  const auto with = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = plain;
    all.insert(all.end(), more.begin(), more.end());
    return run_engram(all);
  };
  const ProcessResult trained = with({"--json"});
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const nlohmann::json object = nlohmann::json::parse(trained.out).at("configs").at(0);
  CHECK(object.at("family") == "transformer_xl");
  CHECK(object.at("memory_positions") == 6);
  CHECK(object.at("share_of_product_rate").get<double>() > 0);
  CHECK(object.at("kernels").size() > 5);
  const ProcessResult frozen = with({"--inference", "--json"});
  REQUIRE(frozen.exit_code == 0);
  const nlohmann::json blocks = nlohmann::json::parse(frozen.out).at("inference").at(0).at("blocks");
  REQUIRE(blocks.size() == 3);
  CHECK(blocks.at(2).at("cached_blocks") == 16);
  CHECK(blocks.at(2).at("saving_by_formulas").get<double>() > blocks.at(0).at("saving_by_formulas").get<double>());
  const ProcessResult turns = with({"--inference", "--side-by-side", "--vary", "model.memory=6,12", "--json"});
  REQUIRE(turns.exit_code == 0);
  const nlohmann::json both = nlohmann::json::parse(turns.out).at("side_by_side");
  REQUIRE(both.size() == 2);
  CHECK_THAT(both.at(1).at("name").get<std::string>(), ContainsSubstring(" memory-12"));
  CHECK(both.at(1).at("flops_per_token") > both.at(0).at("flops_per_token"));
  const ProcessResult other = with({"--vocab", "30", "--json"});
  REQUIRE(other.exit_code == 0);
  CHECK(nlohmann::json::parse(other.out).at("configs").at(0).at("parameters").get<std::int64_t>() -
            object.at("parameters").get<std::int64_t>() ==
        21 * 9);
  const std::string svg = (folder / "sizes.svg").string();
  const ProcessResult sizes = with({"--vary", "model.inner=4,12", "--svg", svg});
  REQUIRE(sizes.exit_code == 0);
  const std::string table = sizes.out.substr(sizes.out.find("\nBy size"));
  CHECK_THAT(table, ContainsSubstring("config inner-4") && ContainsSubstring("config inner-12") &&
                        ContainsSubstring("us a call"));
  CHECK_THAT(get_file(svg), ContainsSubstring("outside of kernels"));
  const ProcessResult one = with({"--svg", svg});
  CHECK(one.exit_code == 2);
  CHECK_THAT(one.err, ContainsSubstring("bench: --svg must be of several configs, got 1"));
  CHECK_THAT(with({"--inference", "--svg", svg}).err, ContainsSubstring("bench: --svg is of training and"));
  CHECK_THAT(with({"--compare-spans", "--vary", "model.inner=4,12"}).err,
             ContainsSubstring("bench: --vary is of training and --inference, got 'model.inner=4,12'"));
  for (const std::vector<std::string>& wrong : {std::vector<std::string>{"--spans", "8"}, {"--compare-spans"}}) {
    const ProcessResult refused = with(wrong);
    CHECK(refused.exit_code == 2);
    CHECK(refused.out.empty());
    CHECK_THAT(refused.err, ContainsSubstring("bench " + wrong.front() + ":") && ContainsSubstring("transformer_xl"));
  }
}

}  // namespace engram::harness::transformer_xl_bench_test

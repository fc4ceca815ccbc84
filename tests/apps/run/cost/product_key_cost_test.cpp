/// Configs, arithmetic and bench of the product-key family: parameters of [product-key 5.3], FLOPs of section 7.1.

#include "apps/run/cost/product_key_cost.hpp"
#include "core/files/json.hpp"

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/cost/parameter_groups.hpp"
#include "apps/studies/bench/bench_report.hpp"
#include "apps/studies/bench/inference_bench.hpp"
#include "apps/studies/bench/training_bench.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::product_key_cost_test {
namespace {

std::string config_path(const std::string& name) {
  return std::string(ENGRAM_SOURCE_DIR) + "/apps/configs/product-key/" + name + ".toml";
}

TEST_CASE("product-key: the configs have the numbers of parameters and the settings of the worked tables",
          "[product-key][T14]") {
  struct Row {
    const char* name;
    std::int64_t total, layers, width;
  };
  constexpr Row kRows[] = {{"12-layers-1024", 213'181'024, 12, 1024}, {"16-layers-1024", 263'565'920, 16, 1024},
                           {"24-layers-1024", 364'335'712, 24, 1024}, {"12-layers-1600", 465'772'000, 12, 1600},
                           {"16-layers-1600", 588'735'200, 16, 1600}, {"24-layers-1600", 834'661'600, 24, 1600},
                           {"ablation-host", 49'957'472, 6, 512}};
  for (const Row& row : kRows) {
    CAPTURE(row.name);
    const RunConfig config = load_run_config(config_path(row.name));
    const ParameterCount count = count_parameters(*make_model(config.model));
    const std::int64_t d = row.width;
    CHECK(count.total == row.total);
    CHECK(count.of(ParameterRole::embeddings) == 60'000 * d);
    CHECK(count.of(ParameterRole::positions) == 512 * d);
    CHECK(count.of(ParameterRole::output) == 60'000);
    CHECK(count.of(ParameterRole::attention) == row.layers * 4 * (d * d + d));
    CHECK(count.of(ParameterRole::feed_forward) == row.layers * (8 * d * d + 5 * d));
    CHECK(count.of(ParameterRole::layer_norm) == (2 * row.layers + 1) * 2 * d);
    CHECK(config.model.layers() == row.layers);
    CHECK(config.model.product_key.heads == (row.layers == 6 ? 8 : 16));
    CHECK(config.model.product_key.activation == Activation::gelu);
    CHECK(config.model.product_key.norm_epsilon == 1e-12);
    CHECK(config.optimizer.kind == OptimizerKind::adam);
    CHECK(config.optimizer.beta1 == 0.9);
    CHECK(config.optimizer.beta2 == 0.98);
    CHECK(config.optimizer.epsilon_at == EpsilonAt::uncorrected);
    CHECK(config.training.block == 256);
    // u < W: lr u / W, then lr sqrt(W) / sqrt(u), u updates being completed ([product-key 5.1]).
    const auto rate = [&](std::int64_t completed) { return config.schedule.at(completed + 1); };
    CHECK(rate(0) == 0);
    CHECK(rate(1000) == Approx(2.5e-4 / 4).epsilon(1e-12));
    CHECK(rate(4000) == Approx(2.5e-4).epsilon(1e-12));
    CHECK(rate(16000) == Approx(1.25e-4).epsilon(1e-12));
    CHECK(rate(100'000) == Approx(2.5e-4 / 5).epsilon(1e-12));
  }
}

TEST_CASE("product-key: arithmetic by the formulas of the worked tables", "[product-key]") {
  ProductKeyTransformerOptions model{.vocabulary = 60'000, .layers = 1, .width = 1024, .heads = 16};
  // Section 7.1: a feed-forward sublayer takes 16.8 MFLOP at d = 1024.
  const double one = forward_flops(model, 256);
  model.inner = 1;
  CHECK(one - forward_flops(model, 256) == Approx(16 * 1024. * 1024 - 4 * 1024));
  model.inner = 0;
  model.layers = 3;
  CHECK(forward_flops(model, 256) == Approx(3 * (24 * 1024. * 1024 + 4 * 1024 * 128.5) + 2. * 1024 * 60'000));
  CHECK(training_flops(model, 256).total() == Approx(3 * forward_flops(model, 256)));
  CHECK(forward_flops(model, 256) - forward_flops(model, 128) == Approx(3 * 4 * 1024 * 64.));
}

TEST_CASE("product-key: count prints groups and arithmetic of windows", "[product-key]") {
  const std::string config = config_path("ablation-host");
  const ProcessResult printed = run_engram({"count", "--config", config, "--json"});
  INFO(printed.err);
  REQUIRE(printed.exit_code == 0);
  const nlohmann::json object = nlohmann::json::parse(printed.out);
  CHECK(object.at("family") == "product_key");
  CHECK(object.at("parameters") == 49'957'472);
  CHECK(object.at("groups").at("positions") == 512 * 512);
  const nlohmann::json& rows = object.at("flops_per_token");
  REQUIRE(rows.size() == 2);
  CHECK(rows.at(0).at("window_positions") == 256);
  CHECK(rows.at(1).at("window_positions") == 512);
  const RunConfig read = load_run_config(config);
  CHECK(rows.at(0).at("evaluation").get<double>() == Approx(forward_flops(read.model.product_key, 256)));
  const ProcessResult table = run_engram({"count", "--config", config});
  CHECK_THAT(table.out, ContainsSubstring("window, positions") && !ContainsSubstring("engram spans"));
}

BenchCase small_case() {
  BenchCase bench{"small", {}, {}};
  bench.config.model.family = ModelFamily::product_key;
  bench.config.model.product_key = {.vocabulary = 9, .layers = 2, .width = 8, .heads = 2, .position_rows = 16};
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

TEST_CASE("product-key bench: counts kernels, tokens and parameters, with formulas of the family", "[product-key]") {
  const BenchCase bench = small_case();
  Runtime runtime;
  const BenchResult result = bench_training(bench, made_up_limits(), runtime, 3);
  CHECK(result.tokens == 12);
  CHECK(result.cost.window == 2.5);
  CHECK(result.parameters == 9 * 8 + 16 * 8 + 16 + 9 + 2 * (4 * (64 + 8) + 32 + 8 * 64 + 5 * 8));
  const auto& totals = result.kernels.totals();
  CHECK(totals.at("attention_forward").calls == 2 * 3);
  CHECK(totals.at("gelu_forward").calls == 2 * 3);
  CHECK(totals.find("project_past_forward") == totals.end());
  CHECK(result.kernel_flops("matmul") == Approx(12 * result.cost.training.products));
  CHECK(result.kernel_exponentials("cross_entropy") == 12 * 9);
  CHECK_THAT(table_of(bench, result, made_up_limits()),
             ContainsSubstring("L=2 d=8 H=2 F=32 M=4 B=3, windows of a block (mean 2.5 positions)"));
  const nlohmann::json json = json_of(bench, result, made_up_limits());
  CHECK(json.at("family") == "product_key");
  CHECK(json.at("mean_visible_positions") == 2.5);
  CHECK_FALSE(json.contains("spans"));

  const InferenceResult frozen = bench_inference(bench, made_up_limits(), runtime, 1);
  REQUIRE(frozen.blocks.size() == 1);
  CHECK(frozen.blocks[0].forward_flops == frozen.blocks[0].frozen_flops);
  CHECK(frozen.token_bytes == 4 * (2 * (4 * 64 + 2 * 8 * 32) + 8 * 9));

  BenchCase spans = small_case();
  spans.spans = {8};
  CHECK_THROWS_WITH(bench_training(spans, made_up_limits(), runtime, 1), ContainsSubstring("product_key"));
}

}  // namespace
}  // namespace engram::harness::product_key_cost_test

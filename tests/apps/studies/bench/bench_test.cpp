/// The bench's book-keeping: nothing here compares times with expectations.

#include <algorithm>
#include <chrono>
#include <thread>

#include "apps/run/cost/all_attention_cost.hpp"
#include "apps/run/folder/resident_memory.hpp"
#include "apps/studies/bench/bench_report.hpp"
#include "apps/studies/bench/inference_bench.hpp"
#include "apps/studies/bench/kernel_times.hpp"
#include "apps/studies/bench/side_by_side.hpp"
#include "apps/studies/bench/training_bench.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/harness/catch.hpp"

namespace engram::bench_test {
namespace {

BenchCase small_case() {
  BenchCase bench{"small", {}, {}};
  bench.config.model.all_attention.vocabulary = 9;
  bench.config.model.all_attention.layers = 2;
  bench.config.model.all_attention.width = 8;
  bench.config.model.all_attention.heads = 2;
  bench.config.model.all_attention.slots = 4;
  bench.config.model.all_attention.max_span = 48;
  bench.config.model.all_attention.ramp = 8;
  bench.config.training.batch = 4;
  bench.config.training.block = 16;
  bench.config.training.split = 2;
  bench.config.schedule.rate = 1;
  return bench;
}

MachineLimits made_up_limits() {
  MachineLimits limits;
  limits.flops_per_second = 1e9;
  limits.bytes_per_second = 1e9;
  limits.exponentials_per_second = 1e9;
  return limits;
}

BenchResult bench_on_fresh_runtime(const BenchCase& bench, std::int64_t steps) {
  Runtime runtime;
  return bench_training(bench, made_up_limits(), runtime, steps);
}

}  // namespace

TEST_CASE("time of a kernel does not count for the kernel that called it") {
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  Runtime runtime;
  KernelTimes times(runtime.backend());
  times.before("outer");
  for (int i = 0; i < 3; ++i) {
    times.before("inner");
    wait();
    times.after("inner");
  }
  times.after("outer");
  CHECK(times.totals().at("outer").calls == 1);
  CHECK(times.totals().at("inner").calls == 3);
  CHECK(times.seconds("inner") >= 0.006);
  CHECK(times.seconds("outer") >= 0);
  CHECK(times.seconds("never") == 0);
  CHECK(times.seconds() == Approx(times.seconds("inner") + times.seconds("outer")));
}

TEST_CASE("a bench counts steps, tokens, parameters, memory and kernels") {
  const BenchResult result = bench_on_fresh_runtime(small_case(), 3);
  CHECK(result.seconds.size() == 3);
  CHECK(std::is_sorted(result.seconds.begin(), result.seconds.end()));
  CHECK(result.tokens == 64);
  // Embedding, positions, two layers of (W, slots, norm, spans), output.
  CHECK(result.parameters == 9 * 8 + 48 * 4 + 2 * (4 * 64 + 2 * 4 * 8 + 16 + 2) + 9 * 8 + 9);
  CHECK(result.parameter_bytes >= static_cast<std::size_t>(3 * 4 * result.parameters));
  CHECK(result.arena_bytes > 0);
  // Two layers in two pieces of three steps.
  CHECK(result.kernels.totals().at("attention_forward").calls == 2 * 2 * 3);
  CHECK(result.kernels.totals().at("attention_backward").calls == 2 * 2 * 3);
  CHECK(result.kernels.seconds() > 0);
  double wall = 0;
  for (const double seconds : result.seconds) wall += seconds;
  CHECK(result.kernels.seconds() <= wall);
  CHECK(result.kernel_flops("attention_forward") == 64 * result.cost.training.attention_forward);
  CHECK(result.kernel_flops("fill") == 0);
  CHECK(result.least_seconds > 0);
}

TEST_CASE("attention weights take what model.attention_memory allows each layer") {
  BenchCase bench = small_case();
  bench.config.model.all_attention.max_span = 1024;
  bench.config.training.batch = 4;
  bench.config.training.block = 64;
  bench.config.training.split = 1;
  const auto step_bytes = [&](std::int64_t limit) {
    bench.config.model.all_attention.attention_memory = limit;
    return static_cast<double>(bench_on_fresh_runtime(bench, 1).arena_bytes);
  };
  // Two layers, two heads, 1024 positions and 4 slots: 2.008 MiB a layer.
  const double kept = 2.0 * 4 * 64 * 2 * (1024 + 4) * 4, again = step_bytes(0), all = step_bytes(1024) - again;
  CHECK(all > 0.9 * kept);
  CHECK(all < 1.1 * kept);
  CHECK(step_bytes(5) - again > 0.9 * kept);
  CHECK(step_bytes(4) == again);
}

TEST_CASE("a kernel's floor is the slowest of products, exponentials and bytes") {
  const BenchResult result = bench_on_fresh_runtime(small_case(), 3);
  MachineLimits limits;
  limits.flops_per_second = limits.exponentials_per_second = limits.bytes_per_second = 1e30;
  CHECK(result.kernel_floor("attention_forward", limits) < 1e-20);
  limits.flops_per_second = 1e6;
  CHECK(result.kernel_floor("attention_forward", limits) == Approx(64 * result.cost.training.attention_forward / 1e6));
  limits.exponentials_per_second = 1;  // 2 layers, 2 heads, 48 positions, 4 slots
  CHECK(result.kernel_floor("attention_forward", limits) == Approx(64 * 2 * 2 * (48 + 4)));
  CHECK(result.kernel_floor("attention_backward", limits) == Approx(64 * 2 * 2 * (48 + 4)));
  CHECK(result.kernel_floor("cross_entropy", limits) == Approx(64 * 9));
  CHECK(result.kernel_floor("never", limits) == 0);
  // Two layers in two pieces of 32 tokens: x, residual, y, gain, bias and two statistics.
  limits.bytes_per_second = 1;
  CHECK(result.kernel_floor("layer_norm_forward", limits) >= 2 * 2 * 3 * 32 * 8 * 4);
  CHECK(result.kernel_floor("layer_norm_forward", limits) <= 2 * 2 * 5 * 32 * 8 * 4);
}

TEST_CASE("spans are the asked ones, and training does not move them") {
  BenchCase bench = small_case();
  CHECK(bench_on_fresh_runtime(bench, 1).cost.window == 48);
  bench.spans = {8};
  CHECK(bench_on_fresh_runtime(bench, 2).cost.window == 8);
  bench.spans = {48, 8};
  const BenchResult ragged = bench_on_fresh_runtime(bench, 2);
  CHECK(ragged.cost.window == 28);
  bench.config.model.all_attention.span = SpanKind::fixed;
  bench.spans = {};
  const BenchResult full = bench_on_fresh_runtime(bench, 1);
  CHECK(full.cost.window == 48);
  CHECK(full.cost.training.past_forward / ragged.cost.training.past_forward == Approx(48.0 / 28));
}

TEST_CASE("spans that the model cannot have are refused") {
  BenchCase bench = small_case();
  for (const std::vector<std::int64_t>& spans : {std::vector<std::int64_t>{7}, {49}, {48, 8, 8}}) {
    bench.spans = spans;
    CHECK_THROWS_AS(bench_on_fresh_runtime(bench, 1), UsageError);
  }
  bench.spans = {48};
  bench.config.model.all_attention.span = SpanKind::fixed;
  CHECK_THROWS_AS(bench_on_fresh_runtime(bench, 1), UsageError);
  bench = small_case();
  bench.config.model.all_attention.vocabulary = 0;
  CHECK_THROWS_AS(bench_on_fresh_runtime(bench, 1), UsageError);
}

TEST_CASE("limits are measured at the size that is asked for") {
  Runtime runtime;
  const MachineLimits limits = measure_limits(runtime.backend(), 64);
  const bool bf16 = runtime.backend().multiplies_bf16();
  REQUIRE(limits.products.size() == (bf16 ? 6 : 3));
  CHECK(limits.products[0].rows == 64);
  CHECK(limits.products[1].rows == 16);
  CHECK(limits.products[2].inner == 8);
  double fastest = 0;
  for (const auto& product : limits.products)
    if (product.precision == ProductPrecision::f32) fastest = std::max(fastest, product.flops_per_second);
  CHECK(limits.flops_per_second == fastest);
  CHECK((limits.bf16_flops_per_second > 0) == bf16);
  CHECK(limits.bytes_per_second > 0);
  CHECK(limits.exponentials_per_second > 0);
  CHECK_THROWS_AS(measure_limits(runtime.backend(), 8), UsageError);
}

TEST_CASE("steps with bf16 products are measured against the rate of bf16 products, where there is one") {
  MachineLimits limits;
  limits.flops_per_second = 3;
  CHECK(limits.with(ProductPrecision::bf16).flops_per_second == 3);
  limits.bf16_flops_per_second = 5;
  CHECK(limits.with(ProductPrecision::bf16).flops_per_second == 5);
  CHECK(limits.with(ProductPrecision::f32).flops_per_second == 3);
  BenchCase bench = small_case();
  const BenchResult f32 = bench_on_fresh_runtime(bench, 1);
  CHECK_THAT(table_of(bench, f32, made_up_limits()), !ContainsSubstring("bf16"));
  bench.config.training.products = ProductPrecision::bf16;
  CHECK_THAT(table_of(bench, bench_on_fresh_runtime(bench, 1), made_up_limits()),
             ContainsSubstring("operands rounded to bf16"));
}

TEST_CASE("the report's shares add up to the whole step") {
  const BenchCase bench = small_case();
  const BenchResult result = bench_on_fresh_runtime(bench, 2);
  const nlohmann::json json = json_of(bench, result, made_up_limits());
  double share = 0;
  for (const auto& kernel : json.at("kernels")) share += kernel.at("share").get<double>();
  CHECK(share == Approx(1));
  CHECK(json.at("flops_per_second").get<double>() ==
        Approx(result.cost.training.total() * 64 / result.median_seconds()));
  CHECK(json.at("share_of_product_rate").get<double>() == Approx(json.at("flops_per_second").get<double>() / 1e9));
  const std::string text = table_of(bench, result, made_up_limits());
  CHECK_THAT(text, ContainsSubstring("attention_backward") && ContainsSubstring("(outside kernels)"));
}

TEST_CASE("inference of a recurrent model is timed at its own block: it has no memory of other lengths") {
  BenchCase bench{"recurrent", {}, {}};
  bench.config.model.family = ModelFamily::recurrent;
  RecurrentOptions& model = bench.config.model.recurrent;
  model.vocabulary = 9;
  model.embedding_width = 8;
  model.width = 24;
  model.window = 3;
  bench.config.training.batch = 2;
  bench.config.training.block = 4;
  bench.config.schedule.rate = 1;
  Runtime runtime;
  const InferenceResult result = bench_inference(bench, made_up_limits(), runtime, 1);
  REQUIRE(result.blocks.size() == 1);
  CHECK(result.blocks[0].block == 4);
  CHECK(result.blocks[0].cached_blocks == Approx(static_cast<double>(model.readout_reach()) / 4));
}

TEST_CASE("inference: columns of rings are of families that have them") {
  BenchCase bench{"memories", {}, {}};
  bench.config.model.family = ModelFamily::product_key;
  ProductKeyTransformerOptions& model = bench.config.model.product_key;
  model.vocabulary = 9;
  model.layers = 2;
  model.width = 16;
  model.heads = 2;
  model.position_rows = 8;
  model.memories.layers = {2};
  model.memories.subkeys = 4;
  model.memories.heads = 2;
  model.memories.selected = 3;
  model.memories.query_width = 8;
  bench.config.training.batch = 3;
  bench.config.training.block = 8;
  bench.config.schedule.rate = 1;
  Runtime runtime;
  const InferenceResult result = bench_inference(bench, made_up_limits(), runtime, 2);
  REQUIRE(result.blocks.size() == 1);
  CHECK(result.blocks[0].forward_seconds == 0);
  CHECK(result.blocks[0].tokens_per_second() == Approx(3 * 8 / result.blocks[0].frozen_seconds));
  CHECK_THAT(table_of(bench, result), ContainsSubstring("tokens/s") && !ContainsSubstring("as in training"));
  CHECK_FALSE(json_of(bench, result).at("blocks").at(0).contains("saving"));
  CHECK_THAT(table_of(small_case(), bench_inference(small_case(), made_up_limits(), runtime, 1)),
             ContainsSubstring("tokens/s") && ContainsSubstring("as in training"));

  BenchCase more = bench;
  more.name = "more slots";
  more.config.model.product_key.memories.subkeys = 8;
  std::vector<SideBySide> results = bench_side_by_side({bench, more}, runtime, 3);
  REQUIRE(results.size() == 2);
  CHECK(results[0].slots == 16);
  CHECK(results[1].slots == 64);
  CHECK(results[1].parameters - results[0].parameters == 48 * 16 + 2 * 2 * 4 * 4);
  CHECK(results[0].tokens == 24);
  CHECK(results[0].seconds.size() == 3);
  CHECK(results[1].flops > results[0].flops);
  results[0].seconds = {4, 8, 6};
  results[1].seconds = {2, 2, 6};
  CHECK(results[0].tokens_per_second() == 4);
  const nlohmann::json json = json_of(results);
  CHECK(json[0].at("times_the_first") == 1);
  CHECK(json[1].at("times_the_first") == 2);
  CHECK_THAT(table_of(results), ContainsSubstring("more slots") && ContainsSubstring("2.000"));
}

TEST_CASE("inference is timed at two block lengths, beside the formulas") {
  BenchCase bench = small_case();
  bench.spans = {32};
  Runtime runtime;
  const InferenceResult result = bench_inference(bench, made_up_limits(), runtime, 2);
  CHECK(result.window == 32);
  REQUIRE(result.blocks.size() == 2);
  CHECK(result.blocks[0].block == 8);
  CHECK(result.blocks[1].block == 2);
  for (const BlockInference& one : result.blocks) {
    CHECK(one.forward_seconds > 0);
    CHECK(one.frozen_seconds > 0);
    CHECK(one.frozen_flops == evaluation_flops(bench.config.model.all_attention, 32));
    // Two layers project C / M = 4 or 16 states per token to keys and to values.
    CHECK(one.forward_flops - one.frozen_flops == Approx(2 * 4 * 8 * 8 * one.cached_blocks));
  }
  CHECK(result.blocks[1].predicted_saving() > result.blocks[0].predicted_saving());
  const double parameters = 9 * 8 + 48 * 4 + 2 * (4 * 64 + 2 * 4 * 8 + 16 + 2) + 9 * 8 + 9;
  CHECK(result.token_bytes == 4 * (parameters + 2 * 2 * 8 * 32));
  CHECK(result.token_floor_seconds == Approx(result.token_bytes / 1e9));
  REQUIRE(result.generation.size() == 2);
  for (const auto& [rate, streams] : {std::pair(result.generation[0], 1), {result.generation[1], 64}}) {
    CHECK(rate.streams == streams);
    CHECK(rate.prompt == bench.config.training.block);
    CHECK(rate.prompt_tokens_per_second() == Approx(streams * static_cast<double>(rate.prompt) / rate.prompt_seconds));
    CHECK(rate.tokens_per_second() == Approx(streams / rate.token_seconds));
    CHECK(std::min(rate.prompt_seconds, rate.token_seconds) > 0);
  }
  const nlohmann::json generation = json_of(bench, result).at("generation");
  CHECK(generation.at("rates").size() == 2);
  CHECK(generation.at("milliseconds_a_token") == generation.at("rates")[0].at("milliseconds_a_token"));
  CHECK(json_of(bench, result).at("blocks").size() == 2);
  CHECK_THAT(table_of(bench, result), ContainsSubstring("generation"));
}

TEST_CASE("the comparison of spans is that of its four runs") {
  const BenchResult one = bench_on_fresh_runtime(small_case(), 1);
  BenchResult slow = one;
  slow.seconds = {2 * one.seconds[0]};
  slow.cost.training.past_forward += one.cost.training.total();
  const SpanComparison comparison = compare_spans({slow, one, slow, one});
  CHECK(comparison.step_measured == Approx(2));
  CHECK(comparison.step_formula == Approx(2));
  CHECK(comparison.context_measured == Approx(1));
  CHECK(comparison.context_formula == Approx(slow.cost.training.attention() / one.cost.training.attention()));
}

TEST_CASE("the peak of the process memory sees a large block come") {
  reset_peak_resident_bytes();
  const std::size_t before = peak_resident_bytes();
  if (before == 0) return;  // the system does not say
  {
    const std::vector<char> block(std::size_t{64} << 20, 1);
    CHECK(block.back() == 1);
  }
  CHECK(peak_resident_bytes() >= before + (std::size_t{48} << 20));
}

}  // namespace engram::bench_test

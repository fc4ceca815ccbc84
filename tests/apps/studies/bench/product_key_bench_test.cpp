/// The bench of product-key memories: what it counts and prints. Nothing here compares times with expectations.

#include <algorithm>
#include <set>

#include "apps/studies/bench/product_key_bench_report.hpp"
#include "apps/studies/bench/random_rows.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/harness/catch.hpp"

namespace engram::product_key_bench_test {
namespace {

ProductKeyBench small_bench() {
  ProductKeyBench bench;
  bench.slots = {64, 256};
  bench.width = 24;
  bench.heads = 2;
  bench.selected = 3;
  bench.query_width = 8;
  bench.tokens = 20;
  bench.layer_tokens = 12;
  bench.flat_tokens = 5;
  bench.steps = 3;
  return bench;
}

ProductKeyBenchResult made_up_machine() {
  ProductKeyBenchResult result;
  result.machine.flops_per_second = 1e9;
  result.machine.bytes_per_second = 1e9;
  result.machine.exponentials_per_second = 1e9;
  result.one_thread_copy = 1e9;
  return result;
}

PassTimes times(double seconds) {
  PassTimes made;
  made.seconds = {seconds, seconds, seconds};
  return made;
}

ReadRun made_up_read(std::int64_t slots, double kernel, double plain) {
  ReadRun run;
  run.slots = slots;
  run.tokens = run.flushed_tokens = 1000;
  run.kernel = run.flushed = times(1000 / kernel);
  run.plain = run.flushed_plain = times(1000 / plain);
  run.in_order = times(1000 / (2 * kernel));
  return run;
}

const ProductKeyVerdict& verdict_of(const std::vector<ProductKeyVerdict>& verdicts, const std::string& words) {
  const auto found = std::ranges::find_if(
      verdicts, [&words](const ProductKeyVerdict& verdict) { return verdict.what.find(words) != std::string::npos; });
  if (found == verdicts.end()) throw Error("no verdict about " + words);
  return *found;
}

}  // namespace

TEST_CASE("rows are drawn in range, and distinct ones are") {
  RandomRows random(50);
  std::vector<std::int64_t> ids(2000);
  random.draw(ids);
  CHECK(std::ranges::all_of(ids, [](std::int64_t id) { return id >= 0 && id < 50; }));
  CHECK(std::set(ids.begin(), ids.end()).size() == 50);
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<std::int64_t> some(40), all(50);
    random.draw_distinct(some);
    CHECK(std::set(some.begin(), some.end()).size() == 40);
    random.draw_distinct(all);
    CHECK(std::set(all.begin(), all.end()).size() == 50);
  }
  std::vector<std::int64_t> many(51);
  CHECK_THROWS_WITH(random.draw_distinct(many), ContainsSubstring("at most the 50") && ContainsSubstring("got 51"));
}

TEST_CASE("the plain loop adds weighted rows, and whole rows are read, on any number of threads") {
  constexpr std::int64_t kRows = 9, kWidth = 21, kReads = 2;
  const OrdinaryPages pages(kRows * kWidth * sizeof(float));
  auto* const values = static_cast<float*>(pages.data());
  CHECK(std::all_of(values, values + kRows * kWidth, [](float value) { return value == 0; }));
  for (std::int64_t i = 0; i < kRows * kWidth; ++i) values[i] = static_cast<float>(i);
  const std::vector<std::int64_t> ids{0, 8, 3, 3, 5, 1};
  const std::vector<float> weights{1, 2, 0.5f, 0.25f, -1, 4};
  for (const int threads : {1, 2, 5}) {
    std::vector<float> y(3 * kWidth, -1);
    plain_weighted_rows(values, DType::f32, kWidth, ids, weights, kReads, y.data(), threads);
    for (std::int64_t r = 0; r < 3; ++r)
      for (std::int64_t c = 0; c < kWidth; ++c) {
        float sum = 0;
        for (std::int64_t j = 0; j < kReads; ++j) {
          const auto use = static_cast<std::size_t>(r * kReads + j);
          sum += weights[use] * values[ids[use] * kWidth + c];
        }
        CHECK(y[static_cast<std::size_t>(r * kWidth + c)] == sum);
      }
    const std::vector<std::uint64_t> words(1001, 3);
    CHECK(read_in_order(words.data(), 1001 * 8 + 5, threads) == 3003);
    flush_rows(values, kWidth * sizeof(float), ids, threads);
    CHECK(values[kWidth] == kWidth);
  }
}

TEST_CASE("the bench of a memory times every part at every size") {
  const ProductKeyBench bench = small_bench();
  ProductKeyBenchResult result = made_up_machine();
  Runtime runtime({}, 2);
  bench_product_key_reads(bench, runtime, result);
  bench_product_key_layer(bench, KeyKind::product, runtime, result);
  bench_product_key_layer(bench, KeyKind::flat, runtime, result);
  bench_product_key_training(bench, runtime, result);
  CHECK(result.skipped.empty());
  CHECK(runtime.backend().threads() == 2);

  REQUIRE(result.reads.size() == 4);  // two sizes, one thread and two
  for (const ReadRun& run : result.reads) {
    CHECK(run.kernel.seconds.size() == 3);
    CHECK(run.plain.seconds.size() == 3);
    CHECK(run.tokens == 20);
    CHECK(run.flushed_tokens == std::min<std::int64_t>(20, run.slots / 6));
    CHECK(run.speed() > 0);
  }
  REQUIRE(result.layers.size() == 4);
  for (const LayerRun& run : result.layers) {
    const bool flat = run.keys == KeyKind::flat;
    CHECK(run.tokens == (flat ? 5 : 12));
    CHECK(run.query_flops == 2.0 * static_cast<double>(run.tokens) * 24 * 16);
    const double keys = flat ? static_cast<double>(run.slots) : (run.slots == 64 ? 8 : 16);
    CHECK(run.score_flops == 2.0 * static_cast<double>(run.tokens) * 16 * keys);
    CHECK(run.read_bytes == static_cast<double>(run.tokens) * 6 * 24 * 4);
    for (const LayerStage stage :
         {LayerStage::query, LayerStage::scores, LayerStage::select, LayerStage::softmax, LayerStage::read})
      CHECK(run.stages[static_cast<std::size_t>(stage)].median() > 0);
    double stages = 0;
    for (const PassTimes& stage : run.stages) stages += stage.seconds.front();
    CHECK(stages <= run.whole.seconds.back());
  }
  REQUIRE(result.trainings.size() == 6);  // two sizes, three rules
  for (const ProductKeyTrainingRun& run : result.trainings) {
    CHECK(run.touched > 0);
    CHECK(run.touched <= static_cast<double>(std::min<std::int64_t>(run.slots, 20 * 6)));
    CHECK(run.update.median() > 0);
    const bool adam = run.kind == TableKind::adam;
    CHECK(run.update_bytes == Approx(run.touched * 24 * (adam ? 28 : 12)));
    CHECK((run.catch_up.median() > 0) == (run.mode == TableMode::deferred));
    CHECK((run.catch_up_bytes > 0) == (run.mode == TableMode::deferred));
    CHECK(run.behind < run.touched);
  }

  const std::string text = table_of(bench, result);
  for (const char* part : {"Reading values: 6 rows of 96 bytes", "Forward pass of the layer",
                           "Training step of the layer", "row_adagrad", "adam deferred", "Aims"})
    CHECK_THAT(text, ContainsSubstring(part));
  const nlohmann::json json = json_of(bench, result);
  CHECK(json["reads"].size() == 4);
  CHECK(json["layers"].size() == 4);
  CHECK(json["training"].size() == 6);
  CHECK(json["layers"][0]["stages"].size() == kLayerStages);
  CHECK(json["aims"].size() == product_key_verdicts(bench, result).size());
}

TEST_CASE("verdicts compare the sizes that they are about") {
  const ProductKeyBench bench;
  ProductKeyBenchResult result = made_up_machine();
  for (const auto& [slots, speed] :
       {std::pair{16384, 50e3}, std::pair{65536, 30e3}, std::pair{1048576, 28e3}, std::pair{4194304, 20e3}})
    result.reads.push_back(made_up_read(slots, speed, 14e3));
  const std::vector<ProductKeyVerdict> verdicts = product_key_verdicts(bench, result);
  CHECK(verdict_of(verdicts, "plain loop").figure == Approx(2));
  CHECK(verdict_of(verdicts, "plain loop").met());
  CHECK(verdict_of(verdicts, "from 65536 to 1048576").figure == Approx(28.0 / 30));
  CHECK(verdict_of(verdicts, "from 65536 to 1048576").met());
  CHECK(verdict_of(verdicts, "from 65536 to 4194304").figure == Approx(20.0 / 30));
  CHECK_FALSE(verdict_of(verdicts, "from 65536 to 4194304").met());
  CHECK(verdict_of(verdicts, "from 16384 to 4194304").figure == Approx(20.0 / 50));
  // Nothing is said of a range without both of its ends.
  ProductKeyBenchResult shorter = result;
  shorter.reads.pop_back();
  for (const ProductKeyVerdict& verdict : product_key_verdicts(bench, shorter))
    CHECK(verdict.what.find("4194304") == std::string::npos);
  CHECK(result.row_rate(bench, 1) == Approx(20e3 * 128 * 4096));  // of the largest table
  CHECK(result.row_rate(bench, 7) == 1e9);

  LayerRun layer;
  layer.slots = 65536;
  layer.tokens = 1;
  layer.query_flops = 1e9;
  layer.score_flops = 5e8;
  layer.read_bytes = result.row_rate(bench, 1) / 2;
  layer.whole = times(2.4);
  layer.stages[static_cast<std::size_t>(LayerStage::scores)] = times(0.6);
  CHECK(model_seconds(bench, result, layer) == Approx(2));
  CHECK(layer.without_scores() == Approx(1.8));
  result.layers.push_back(layer);
  CHECK(verdict_of(product_key_verdicts(bench, result), "cost model").figure == Approx(1.2));
  CHECK(verdict_of(product_key_verdicts(bench, result), "cost model").met());

  for (const auto& [slots, seconds] : {std::pair{16384, 100.0}, std::pair{65536, 1.0}, std::pair{1048576, 40.0}}) {
    LayerRun flat;
    flat.keys = KeyKind::flat;
    flat.slots = slots;
    flat.whole = times(seconds);
    result.layers.push_back(flat);
  }
  CHECK(verdict_of(product_key_verdicts(bench, result), "flat keys").figure == Approx(2.5));
  CHECK_FALSE(verdict_of(product_key_verdicts(bench, result), "flat keys").met());

  ProductKeyTrainingRun training;
  training.slots = 65536;
  training.update = times(1.2);
  training.update_bytes = 1e9;
  result.trainings.push_back(training);
  CHECK(verdict_of(product_key_verdicts(bench, result), "update of a table").figure == Approx(1.2));
}

TEST_CASE("sizes that are no memory's are refused") {
  ProductKeyBench bench = small_bench();
  bench.slots = {64, 65};
  CHECK_THROWS_WITH(bench.check(), ContainsSubstring("--slots must be squares") && ContainsSubstring("got 65"));
  bench.slots = {};
  CHECK_THROWS_WITH(bench.check(), ContainsSubstring("--slots"));
  bench.slots = {64};
  bench.selected = 65;
  CHECK_THROWS_WITH(bench.check(), ContainsSubstring("selected"));
  CHECK(too_large("a table", 1).empty());
  if (available_bytes() > 0)
    CHECK_THAT(too_large("a table of 9 slots", 1e18), ContainsSubstring("a table of 9 slots needs"));
}

TEST_CASE("engram bench --memory prints one JSON object, and names what does not fit", "[night]") {
  const harness::ProcessResult result =
      harness::run_engram({"bench", "--memory", "--slots", "64", "--width", "16", "--heads", "2", "--selected", "2",
                           "--query-width", "4", "--tokens", "8", "--steps", "1", "--product-size", "16", "--json"});
  REQUIRE(result.exit_code == 0);
  const nlohmann::json json = nlohmann::json::parse(result.out);
  CHECK(json["memory"]["width"] == 16);
  CHECK(json["memory"]["reads"][0]["slots"] == 64);
  CHECK(json["memory"]["not_measured"].empty());
  CHECK(json["machine"].contains("products"));
  const auto refused = [](std::vector<std::string> arguments, const char* named) {
    arguments.insert(arguments.begin(), "bench");
    const harness::ProcessResult failed = harness::run_engram(arguments);
    CHECK(failed.exit_code != 0);
    CHECK_THAT(failed.err, ContainsSubstring(named));
  };
  refused({"--memory", "--slots", "63"}, "--slots must be squares");
  refused({"--memory", "--parts", "everything"}, "--parts");
  refused({"--memory", "--softmax"}, "--softmax");
  refused({"--memory", "--device", "simulated"}, "--device");
  refused({"--slots", "64"}, "--memory");
  refused({"--tokens", "64"}, "--softmax or --memory");
  refused({"--against-vanilla", "--tokens", "64"}, "--softmax or --memory");
}

}  // namespace engram::product_key_bench_test

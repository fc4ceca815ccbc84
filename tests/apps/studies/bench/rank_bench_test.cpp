/// The bench of several ranks, which are threads: its book-keeping, no times.

#include <string>
#include <vector>

#include "apps/studies/bench/bench_report.hpp"
#include "apps/studies/bench/training_bench.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::harness::rank_bench_test {
namespace {

BenchCase case_for_ranks() {
  BenchCase bench{"small", {}, {}};
  AllAttentionOptions& model = bench.config.model.all_attention;
  model.vocabulary = 9;
  model.layers = 2;
  model.width = 8;
  model.heads = 2;
  model.slots = 4;
  model.max_span = 48;
  model.ramp = 8;
  bench.config.training.batch = 4;
  bench.config.training.block = 16;
  bench.config.schedule.rate = 1;
  return bench;
}

TEST_CASE("ranks: a bench of two says what each computes and sends, against one alone", "[ranks]") {
  MachineLimits limits;
  limits.flops_per_second = limits.bytes_per_second = limits.exponentials_per_second = 1e9;
  std::vector<nlohmann::json> reports(2);
  std::vector<std::string> tables(2);
  run_ranks(2, [&](Communicator& ranks) {
    const BenchCase bench = case_for_ranks();
    const BenchResult result = bench_ranks(bench, limits, {.threads = 1, .steps = 3}, ranks);
    reports[static_cast<std::size_t>(ranks.rank())] = json_of(bench, result, limits);
    tables[static_cast<std::size_t>(ranks.rank())] = table_of(bench, result, limits);
  });
  const nlohmann::json& first = reports[0];
  CHECK(first.at("tokens_per_step") == 64);
  CHECK(first.at("steps") == 3);
  const nlohmann::json& ranks = first.at("ranks");
  CHECK(ranks.at("ranks") == 2);
  CHECK(ranks.at("milliseconds_one_rank").get<double>() > 0);
  CHECK(ranks.at("efficiency").get<double>() ==
        Approx(ranks.at("milliseconds_one_rank").get<double>() / (2 * first.at("milliseconds_median").get<double>())));
  // Both together send the gradients once and the values once, padding with them, and sums of squares.
  const std::int64_t sent = ranks.at("bytes_sent_per_step").get<std::int64_t>() +
                            reports[1].at("ranks").at("bytes_sent_per_step").get<std::int64_t>();
  CHECK(sent >= 2 * 4 * first.at("parameters").get<std::int64_t>());
  CHECK(ranks.at("hidden_share").get<double>() >= 0);
  CHECK(ranks.at("hidden_share").get<double>() <= 1);
  CHECK_FALSE(reports[1].at("ranks").contains("efficiency"));
  CHECK_THAT(tables[0], ContainsSubstring("  2 ranks: ") && ContainsSubstring(" of 2 times one rank, which takes "));
  // Each rank's formulas are of its half.
  CHECK(first.at("flops_per_second").get<double>() ==
        Approx(first.at("flops_per_token").get<double>() * 32 / (first.at("milliseconds_median").get<double>() / 1e3)));
}

TEST_CASE("ranks: a bench takes what one rank was measured to take, and refuses a batch that cannot be shared",
          "[ranks]") {
  MachineLimits limits;
  limits.flops_per_second = limits.bytes_per_second = limits.exponentials_per_second = 1e9;
  double alone = 0;
  run_ranks(2, [&](Communicator& ranks) {
    const BenchResult result =
        bench_ranks(case_for_ranks(), limits, {.threads = 1, .steps = 1, .alone_seconds = 17}, ranks);
    if (ranks.leads()) alone = result.rank_bench.alone_seconds;
  });
  CHECK(alone == 17);
  CHECK_THROWS_AS(
      run_ranks(3,
                [&](Communicator& ranks) { bench_ranks(case_for_ranks(), limits, {.threads = 1, .steps = 1}, ranks); }),
      UsageError);
}

}  // namespace
}  // namespace engram::harness::rank_bench_test

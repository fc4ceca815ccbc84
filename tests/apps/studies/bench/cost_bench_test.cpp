/// From counted launches to the report. That the counts are right is tests/simulated/cost_test.cpp's to show.

#include <algorithm>

#include "apps/studies/bench/cost_report.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/harness/catch.hpp"

namespace engram::cost_bench_test {
namespace {

BenchCase small_case() {
  BenchCase bench{"small", {}, {}};
  bench.config.model.all_attention.vocabulary = 9;
  bench.config.model.all_attention.layers = 1;
  bench.config.model.all_attention.width = 8;
  bench.config.model.all_attention.heads = 2;
  bench.config.model.all_attention.slots = 4;
  bench.config.model.all_attention.max_span = 16;
  bench.config.model.all_attention.ramp = 8;
  bench.config.training.batch = 2;
  bench.config.training.block = 8;
  return bench;
}

/// Says of every time between two kernels that one launch was there, of 32 blocks that read 4,800 bytes.
class MadeUpCounter final : public LaunchCounter {
 public:
  void count_launches(bool wanted) override { wanted_ = wanted; }
  std::vector<LaunchCost> take() override {
    if (!wanted_) return {};
    LaunchCost cost{.place = "cuda/made_up.cu:7", .launches = 1, .blocks = 32, .warps = 64};
    cost.reads = {.requests = 10, .lanes = 160, .bytes = 640, .used_bytes = 320, .sectors = 20};
    cost.shared_reads = {.requests = 10, .lanes = 320, .bytes = 1280, .wavefronts = 40, .least_wavefronts = 10};
    cost.distinct_read_bytes = 4800;
    return {cost};
  }
  bool wanted() const { return wanted_; }

 private:
  bool wanted_ = false;
};
MadeUpCounter made_up;

/// The CPU counts so while this lives.
class Counted {
 public:
  Counted() : before_(find_launch_counter) {
    find_launch_counter = [](Backend&) -> LaunchCounter* { return &made_up; };
  }
  ~Counted() { find_launch_counter = before_; }

 private:
  LaunchCounter* (*before_)(Backend&);
};

}  // namespace

TEST_CASE("cost: a device that cannot count is refused") {
  Runtime runtime;
  CHECK_THROWS_WITH(count_costs(small_case(), runtime),
                    ContainsSubstring("bench: --cost must run on a device whose kernels tell their accesses, got cpu"));
}

TEST_CASE("cost: launches belong to the kernel that runs, and counting ends") {
  const Counted counted;
  Runtime runtime;
  const CostResult result = count_costs(small_case(), runtime);
  CHECK(!made_up.wanted());
  CHECK(result.tokens == 16);
  const auto norm = std::ranges::find(result.kernels, "layer_norm_forward", &KernelCost::kernel);
  REQUIRE(norm != result.kernels.end());
  REQUIRE(norm->places.size() == 1);
  CHECK(norm->calls > 0);
  CHECK(norm->places[0].cost.launches == norm->calls);
  CHECK(norm->places[0].cost.distinct_read_bytes == 4800 * norm->calls);
  // A thousandth of a microsecond on an H200, whose memory moves 4.8 TB/s.
  CHECK(norm->seconds(0) == Approx(1e-9 * static_cast<double>(norm->calls)));
  CHECK(norm->bound(0) == CardTime::Bound::memory);
  CHECK(norm->floors[0] > 0);

  const std::string table = table_of(small_case(), result);
  CHECK_THAT(table, ContainsSubstring("layer_norm_forward") && ContainsSubstring("made_up.cu:7"));
  for (std::size_t begin = 0; begin < table.size(); begin = table.find('\n', begin) + 1)
    CHECK(table.find('\n', begin) - begin <= 120);
  const std::string listing = listing_of(result, "layer_norm_forward");
  CHECK_THAT(listing, ContainsSubstring("sectors of 32 bytes, 2.00 a request; 50.0% of their bytes are of use"));
  CHECK_THAT(listing, ContainsSubstring("4.00 a request"));
  CHECK_THROWS_WITH(listing_of(result, "softmaxx"), ContainsSubstring("bench: --kernel must be one that ran, got"));
  const nlohmann::json object = json_of(small_case(), result);
  CHECK(object["kernels"].size() == result.kernels.size());
  CHECK(object["kernels"][0]["places"][0]["place"] == "cuda/made_up.cu:7");
}

TEST_CASE("cost: the least time on a card is that of the unit that is busy longest") {
  const CardLimits card{"made up", 10, 1e9, 1e12, 1e13, 1e12};
  const auto time = [&](auto change) {
    LaunchCost cost{.blocks = 100};
    change(cost);
    return least_time(cost, card);
  };
  CHECK(time([](LaunchCost&) {}).bound == CardTime::Bound::nothing);
  CHECK(time([](LaunchCost& cost) { cost.distinct_written_bytes = 1000; }).seconds == Approx(1e-9));
  // One wavefront a clock of each multiprocessor; four sectors of a request are one.
  const CardTime shared = time([](LaunchCost& cost) { cost.shared_writes.wavefronts = 10000; });
  CHECK(shared.seconds == Approx(1e-6));
  CHECK(shared.bound == CardTime::Bound::l1);
  CHECK(time([](LaunchCost& cost) {
          cost.reads = {.requests = 100, .lanes = 0, .bytes = 0, .used_bytes = 0, .sectors = 1600};
        }).seconds == Approx(400 / 1e10));
  CHECK(time([](LaunchCost& cost) { cost.mma = 1000; }).seconds == Approx(4096 * 1000 / 1e13));
  CHECK(time([](LaunchCost& cost) { cost.exponentials = 1600; }).seconds == Approx(1e-8));
  CHECK(time([](LaunchCost& cost) { cost.bf16_product_flops = 1e4; }).seconds == Approx(1e-9));
  CHECK(time([](LaunchCost& cost) { cost.product_flops = 1e4; }).seconds == Approx(1e-8));
  // Two blocks keep two multiprocessors busy.
  CHECK(time([](LaunchCost& cost) {
          cost.blocks = 2;
          cost.shared_reads.wavefronts = 10000;
        }).seconds == Approx(5e-6));
}

}  // namespace engram::cost_bench_test

/// From counted launches to the report. That the counts are right is tests/simulated/cost_test.cpp's to show.

#include <algorithm>

#include "apps/studies/bench/cost_group_report.hpp"
#include "apps/studies/bench/cost_report.hpp"
#include "apps/studies/bench/random_places.hpp"
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
  void sample(const LaunchSampling& sampling) override {
    blocks_ = sampling.blocks;
    most_blocks = std::max(most_blocks, blocks_);
  }
  std::vector<LaunchCost> take() override {
    if (!wanted_) return {};
    LaunchCost cost{.place = place, .launches = 1, .blocks = 32, .warps = 64};
    cost.reads = {.requests = 10, .lanes = 160, .bytes = 640, .used_bytes = 320, .sectors = 20};
    cost.shared_reads = {.requests = 10, .lanes = 320, .bytes = 1280, .wavefronts = 40, .least_wavefronts = 10};
    cost.distinct_read_bytes = 4800;
    return {cost};
  }
  bool wanted() const { return wanted_; }
  int blocks() const { return blocks_; }

  const char* place = "cuda/made_up.cu:7";
  int most_blocks = 0;  // that were ever to be sampled

 private:
  bool wanted_ = false;
  int blocks_ = 0;
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

TEST_CASE("cost: launches are of one group, and groups add up to the step") {
  const Counted counted;
  Runtime runtime;
  made_up.most_blocks = 0;
  CostResult result = count_costs(small_case(), runtime);
  CHECK(made_up.most_blocks == 0);
  // A product rounds its operands first, and twice as many bytes take twice as long.
  const auto matmul = std::ranges::find(result.kernels, "matmul", &KernelCost::kernel);
  REQUIRE(matmul != result.kernels.end());
  PlaceCost rounding = matmul->places[0];
  rounding.cost.place = "cuda/rounded_product.cu:3";
  for (CardTime& time : rounding.times) time.seconds *= 2;
  matmul->places.push_back(rounding);

  const std::vector<GroupCost> groups = groups_of(result);
  const auto group = [&](const char* name) { return *std::ranges::find(groups, name, &GroupCost::name); };
  CHECK(groups.back().name == "all");
  CHECK(group("rounding").launches == group("products").launches);
  CHECK(group("rounding").cards[0].seconds == Approx(2 * group("products").cards[0].seconds));
  CHECK(group("rounding").cards[0].floor == 0);
  CHECK(group("products").cards[0].floor == matmul->floors[0]);
  CHECK(group("norms").launches > 0);
  CHECK(std::ranges::find(groups, "recurrence", &GroupCost::name) == groups.end());
  GroupCost::OnCard sum;
  std::int64_t launches = 0;
  for (const GroupCost& one : groups) {
    if (one.name == "all") continue;
    launches += one.launches;
    sum.seconds += one.cards[1].seconds;
    sum.floor += one.cards[1].floor;
  }
  CHECK(launches == groups.back().launches);
  CHECK(sum.seconds == Approx(groups.back().cards[1].seconds));
  CHECK(sum.floor == Approx(groups.back().cards[1].floor));
  CHECK(group("all").cards[0].bound == CardTime::Bound::memory);

  const std::string table = group_table_of(small_case(), result);
  CHECK_THAT(table, ContainsSubstring("16 tokens (2 x 8, split 1)") && ContainsSubstring("Counted, not measured") &&
                        ContainsSubstring("rounding"));
  for (std::size_t begin = 0; begin < table.size(); begin = table.find('\n', begin) + 1)
    CHECK(table.find('\n', begin) - begin <= 120);
  CHECK(json_of_groups(result).back()["launches"] == launches);
}

TEST_CASE("cost: every kernel has a group, and few are mere elements") {
  const auto group = [](const char* kernel) { return cost_group(kernel, "cuda/any.cu:1"); };
  CHECK(group("attention_backward") == "attention backward");
  CHECK(group("linear_cross_entropy") == "losses");
  CHECK(group("project_past_backward") == "past");
  CHECK(group("adam") == "optimiser");
  CHECK(group("adam_rows") == "tables");
  CHECK(group("weighted_rows_forward") == "product keys");
  CHECK(group("(outside kernels)") == "copies");
  CHECK(group("bias_backward") == "elements");
  CHECK(cost_group("recurrence_forward", "cuda/rounded_product.cu:80") == "rounding");
}

TEST_CASE("cost: cards that cannot do what was counted are left out") {
  const Counted counted;
  Runtime runtime;
  const CostResult by_warps = count_costs(small_case(), runtime);
  CHECK(by_warps.cards.size() == known_cards().size());
  made_up.place = "cuda/attention/warpgroup_attention.cu:7";
  Runtime fresh;
  const CostResult result = count_costs(small_case(), fresh);
  made_up.place = "cuda/made_up.cu:7";
  REQUIRE(result.cards.size() == 1);
  CHECK(known_cards()[result.cards[0]].capability == 90);
  for (const bool one : {false, true}) {
    const CostResult& shown = one ? result : by_warps;
    for (const std::string& text : {table_of(small_case(), shown), group_table_of(small_case(), shown),
                                    listing_of(shown, "layer_norm_forward"), json_of(small_case(), shown).dump()}) {
      CHECK_THAT(text, ContainsSubstring("H200"));
      CHECK((text.find("A100") == std::string::npos) == one);
    }
  }
}

TEST_CASE("cost: some blocks stand for the others where so many are asked for, and until counting ends") {
  const Counted counted;
  Runtime runtime;
  made_up.most_blocks = 0;
  CHECK(count_costs(small_case(), runtime, 5).blocks == 5);
  CHECK(made_up.most_blocks == 5);
  CHECK(made_up.blocks() == 0);
}

TEST_CASE("cost: where scores mean nothing, slots are selected at random") {
  Runtime runtime;
  Step& step = runtime.step();
  const Tensor half_scores = step.empty({100, 4, 2, 16}, DType::f32);
  const Tensor scores = step.empty({100, 4, 8}, DType::f32), ids = step.empty({100, 4, 8}, DType::i64);
  const std::vector<TensorArgument> tensors{{&half_scores}, {&scores, true}, {&ids, true}};
  std::uint64_t state = 1;
  draw_selected("softmax_forward", tensors, runtime.backend(), state);
  CHECK(state == 1);
  draw_selected("product_key_select", tensors, runtime.backend(), state);
  std::vector<std::int64_t> drawn(ids.data<const std::int64_t>(), ids.data<const std::int64_t>() + ids.count());
  std::ranges::sort(drawn);
  CHECK(drawn.front() >= 0);
  CHECK(drawn.back() < 256);
  // Not std::ranges::unique: its result is none to Clang 14 with this C++ library.
  CHECK(std::unique(drawn.begin(), drawn.end()) - drawn.begin() > 250);
}

TEST_CASE("cost: the least time on a card is that of the unit that is busy longest") {
  const CardLimits card{"made up", 90, 10, 1e9, 1e12, 1e13, 1e12};
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
  CHECK(time([](LaunchCost& cost) { cost.instructions = 1000; }).seconds == Approx(1000 / (4 * 10 * 1e9)));
  CHECK(time([](LaunchCost& cost) { cost.instructions = 1000; }).bound == CardTime::Bound::issue);
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

/// T10 of [all-attention 12] and the shapes of the learning rate.

#include "nn/optim/schedule.hpp"

#include "core/error.hpp"
#include "tests/harness/catch.hpp"
#include "tests/reference/optimizers.hpp"

namespace engram::schedule_test {
namespace {

TEST_CASE("T10: linear warm-up, then constant") {
  const Schedule schedule{.rate = .07, .warmup = 32000};
  CHECK(schedule.at(1) == Approx(2.1875e-6).epsilon(1e-12));
  CHECK(schedule.at(16000) == Approx(.035).epsilon(1e-12));
  CHECK(schedule.at(32000) == .07);
  CHECK(schedule.at(1'000'000) == .07);
  for (const std::int64_t update : {1, 77, 31999, 32001})
    CHECK(schedule.at(update) == Approx(reference::warmup_rate(.07, update, 32000)).epsilon(1e-12));
  CHECK(Schedule{.rate = .07}.at(1) == .07);
}

TEST_CASE("decays go from the end of the warm-up to the final share") {
  for (const auto decay : {Schedule::Decay::linear, Schedule::Decay::cosine}) {
    const Schedule schedule{.rate = 2, .warmup = 10, .decay = decay, .final_share = 0.25, .steps = 110};
    CHECK(schedule.at(5) == Approx(1));
    CHECK(schedule.at(10) == Approx(2));
    CHECK(schedule.at(60) == Approx(1.25));
    CHECK(schedule.at(110) == Approx(0.5));
    for (std::int64_t update = 11; update <= 110; ++update) CHECK(schedule.at(update) < schedule.at(update - 1));
  }
  const Schedule cosine{.rate = 1, .decay = Schedule::Decay::cosine, .steps = 100};
  CHECK(cosine.at(25) == Approx(0.853553).epsilon(1e-5));
}

TEST_CASE("fine-tuning follows the run at its own share, without another warm-up") {
  const Schedule schedule{.rate = 1, .warmup = 10, .steps = 100, .finetune_share = 0.1};
  CHECK(schedule.at(100) == 1);
  CHECK(schedule.at(101) == Approx(0.1));
  CHECK(schedule.at(105) == Approx(0.1));
}

TEST_CASE("schedules that make no sense are refused by name") {
  CHECK_NOTHROW(Schedule{.rate = 1}.check());
  CHECK_THROWS_AS(Schedule{.rate = 0}.check(), UsageError);
  CHECK_THROWS_AS(Schedule{.rate = 1e-46}.check(), UsageError);  // 0 in f32
  CHECK_THROWS_AS(Schedule{.rate = 1e300}.check(), UsageError);  // infinite in f32
  CHECK_THROWS_AS((Schedule{.rate = 1, .warmup = -1}.check()), UsageError);
  CHECK_THROWS_WITH((Schedule{.rate = 1, .warmup = std::int64_t{1} << 32}.check()),
                    "schedule: warmup must be from 0 to 4294967295, got 4294967296");
  CHECK_THROWS_WITH((Schedule{.rate = 1, .warmup = 100, .decay = Schedule::Decay::linear, .steps = 60}.check()),
                    ContainsSubstring("steps 60 and warmup 100") && ContainsSubstring("--set schedule.warmup=6;"));
  CHECK_THROWS_AS((Schedule{.rate = 1, .final_share = 2}.check()), UsageError);
  CHECK_THROWS_AS((Schedule{.rate = 1, .steps = -1}.check()), UsageError);
  CHECK_THROWS_AS((Schedule{.rate = 1, .finetune_share = -.5}.check()), UsageError);
}

}  // namespace
}  // namespace engram::schedule_test

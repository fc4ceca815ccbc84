/// T12 of [transformer-xl 12]: the learning rates of the released programs at the times that they print, and what
/// is refused (edge case 12); and the decay on a plateau.

#include <cmath>

#include "core/error.hpp"
#include "nn/optim/plateau_decay.hpp"
#include "nn/optim/schedule.hpp"
#include "tests/harness/catch.hpp"

namespace engram::transformer_xl_schedule_test {
namespace {

using Decay = Schedule::Decay;
using Clock = Schedule::Clock;

/// The rate after t completed updates, which is that of update t + 1; no fine-tuning.
double after(const Schedule& schedule, std::int64_t t) { return schedule.at(t + 1, std::int64_t{1} << 40); }

/// Equal in as many digits as are printed: half a unit of the seventh.
void check_printed(double got, double printed) {
  const double unit = std::pow(10.0, std::floor(std::log10(printed)) - 6);
  CHECK(got == Approx(printed).margin(0.5 * unit).epsilon(0));
}

TEST_CASE("T12: the cosine of the PyTorch form, from update 0 on") {
  Schedule schedule{.rate = 2.5e-4, .decay = Decay::cosine_from_start, .clock = Clock::completed, .steps = 200'000};
  for (const Clock clock : {Clock::completed, Clock::full_first}) {
    schedule.clock = clock;
    check_printed(after(schedule, 50'000), 2.133883e-4);
    check_printed(after(schedule, 100'000), 1.25e-4);
    check_printed(after(schedule, 150'000), 3.661165e-5);
    CHECK(after(schedule, 200'000) == Approx(0).margin(1e-20));
  }
  const Schedule enwik8_large{
      .rate = 2.5e-4, .warmup = 4000, .decay = Decay::cosine_from_start, .clock = Clock::completed, .steps = 400'000};
  check_printed(after(enwik8_large, 4000), 2.499383e-4);
  CHECK(after(enwik8_large, 4000) < enwik8_large.rate);  // the full rate is never reached
  const Schedule lm1b_base{
      .rate = 2.5e-4, .warmup = 20'000, .decay = Decay::cosine_from_start, .clock = Clock::completed, .steps = 500'000};
  check_printed(after(lm1b_base, 20'000), 2.490143e-4);
}

TEST_CASE("T12: the cosine of the TensorFlow form, from the end of the warm-up on") {
  const Schedule schedule{.rate = 2.5e-4,
                          .warmup = 4000,
                          .decay = Decay::cosine,
                          .clock = Clock::completed,
                          .final_share = 0.004,
                          .steps = 400'000};
  CHECK(after(schedule, 0) == 0);
  CHECK(after(schedule, 2000) == Approx(1.25e-4).epsilon(1e-14));
  CHECK(after(schedule, 4000) == Approx(2.5e-4).epsilon(1e-14));
  CHECK(after(schedule, 202'000) == Approx(1.255e-4).epsilon(1e-14));
  CHECK(after(schedule, 400'000) == Approx(1e-6).epsilon(1e-12));
}

TEST_CASE("T12: the inverse root meets its warm-up at 1 / sqrt(warmup)") {
  const auto multiplier = [](std::int64_t warmup, std::int64_t t) {
    return after({.rate = 1, .warmup = warmup, .decay = Decay::inverse_root, .clock = Clock::completed}, t);
  };
  CHECK(multiplier(4000, 4000) == Approx(1 / std::sqrt(4000.0)).epsilon(1e-15));  // t / w^1.5
  CHECK(multiplier(3999, 4000) == Approx(1 / std::sqrt(4000.0)).epsilon(1e-15));  // 1 / sqrt(t)
  CHECK(multiplier(4000, 0) == 0);
  CHECK(multiplier(4000, 1000) == Approx(0.25 / std::sqrt(4000.0)).epsilon(1e-15));
  CHECK(multiplier(4000, 16000) == Approx(0.5 / std::sqrt(4000.0)).epsilon(1e-15));
  CHECK(multiplier(0, 0) == 1);
  CHECK(multiplier(0, 1) == 1);
  CHECK(multiplier(0, 100) == Approx(0.1).epsilon(1e-15));
}

TEST_CASE("the three clocks differ in the first update and by one update") {
  const auto schedule = [](Decay decay, Clock clock) {
    return Schedule{.rate = 1, .warmup = 10, .decay = decay, .clock = clock, .steps = 100};
  };
  for (const Decay decay : {Decay::none, Decay::linear, Decay::cosine, Decay::cosine_from_start, Decay::inverse_root}) {
    CAPTURE(int(decay));
    const Schedule ours = schedule(decay, Clock::update), completed = schedule(decay, Clock::completed);
    const Schedule full_first = schedule(decay, Clock::full_first);
    for (std::int64_t update = 1; update <= 100; ++update) {
      CHECK(ours.at(update) == ours.formula(update));
      CHECK(completed.at(update) == ours.formula(update - 1));
      if (update > 1) CHECK(full_first.at(update) == completed.at(update));
    }
    CHECK(completed.at(1) == 0);
    CHECK(full_first.at(1) == (decay == Decay::inverse_root ? 0 : 1));
    CHECK(ours.at(101) == Approx(0.1));  // fine-tuning has no clock
    CHECK(completed.at(101) == Approx(0.1));
  }
  CHECK(schedule(Decay::cosine, Clock::update).at(1) == 0.1);  // rate / warmup
}

TEST_CASE("a cosine from the start has a floor") {
  const Schedule schedule{.rate = 2, .decay = Decay::cosine_from_start, .final_share = 0.25, .steps = 100};
  CHECK(schedule.formula(0) == 2);
  CHECK(schedule.formula(50) == Approx(1.25));
  CHECK(schedule.formula(100) == Approx(0.5));
  CHECK(schedule.formula(1000) == Approx(0.5));
}

TEST_CASE("decays that end need more steps than their warm-up") {
  for (const Decay decay : {Decay::linear, Decay::cosine, Decay::cosine_from_start}) {
    const auto refusal = [decay](std::int64_t warmup, std::int64_t steps) {
      try {
        Schedule{.rate = 1, .warmup = warmup, .decay = decay, .steps = steps}.check();
      } catch (const UsageError& error) {
        return std::string(error.what());
      }
      return std::string();
    };
    CHECK(refusal(9, 10).empty());
    CHECK_THAT(refusal(10, 10), ContainsSubstring("got steps 10 and warmup 10"));
    CHECK_THAT(refusal(11, 10), ContainsSubstring("got steps 10 and warmup 11"));
    CHECK_THAT(refusal(0, 0), ContainsSubstring("got steps 0 and warmup 0"));
    CHECK_THROWS_AS((Schedule{.rate = 1, .decay = decay, .steps = 10, .finetune = Schedule::Finetune::plateau}.check()),
                    UsageError);
  }
  for (const Decay decay : {Decay::none, Decay::inverse_root, Decay::plateau})
    CHECK_NOTHROW(Schedule{.rate = 1, .warmup = 10, .decay = decay, .finetune = Schedule::Finetune::plateau}.check());
  CHECK_THROWS_AS((Schedule{.rate = 1, .plateau_factor = 1}.check()), UsageError);
  CHECK_THROWS_AS((Schedule{.rate = 1, .plateau_factor = 0}.check()), UsageError);
  CHECK_THROWS_AS((Schedule{.rate = 1, .plateau_patience = -1}.check()), UsageError);
}

TEST_CASE("decay on a plateau: the share halves after more than the patience, down to the floor") {
  Schedule schedule{.rate = 4, .warmup = 10, .decay = Decay::plateau, .final_share = 0.2, .plateau_patience = 1};
  PlateauDecay decay(schedule);
  const auto share_after = [&](double loss) {
    decay.add(loss);
    return decay.share();
  };
  CHECK(share_after(2.0) == 1);
  CHECK(share_after(1.9999) == 1);    // lower by less than 1e-4 of the best: the first without an improvement
  CHECK(share_after(1.9997) == 1);    // lower by more
  CHECK(share_after(2.1) == 1);       // within the patience
  CHECK(share_after(1.9996) == 0.5);  // beyond it
  CHECK(share_after(2.2) == 0.5);     // the wait has begun anew
  CHECK(share_after(1.5) == 0.5);
  CHECK(share_after(1.6) == 0.5);
  const std::vector<double> state = decay.state();
  CHECK(share_after(std::nan("")) == 0.25);
  decay.add(9);
  CHECK(share_after(9) == 0.2);  // the floor
  decay.add(9);
  CHECK(share_after(9) == 0.2);

  PlateauDecay resumed(schedule);
  resumed.restore(state);
  CHECK(resumed.share() == 0.5);
  resumed.add(1.49999);
  CHECK(resumed.share() == 0.25);
  PlateauDecay fresh(schedule);
  fresh.restore(PlateauDecay(schedule).state());
  fresh.add(100);
  fresh.add(101);
  CHECK(fresh.share() == 1);
  fresh.add(101);
  CHECK(fresh.share() == 0.5);

  for (const std::vector<double>& bad :
       {std::vector<double>{}, {1}, {2, 0}, {0.5, -1}, {0.5, 0.5}, {1, 0, 1, 1}, {1, 0, std::nan("")}})
    CHECK_THROWS_AS(fresh.restore(bad), UsageError);
}

TEST_CASE("decay on a plateau: the schedule multiplies by the share after the warm-up, and needs it") {
  const Schedule schedule{.rate = 4, .warmup = 10, .decay = Decay::plateau, .steps = 100};
  CHECK(schedule.at(5, 100, 0.5) == 2);
  CHECK(schedule.at(10, 100, 0.5) == 2);
  CHECK(schedule.at(99, 100, 0.25) == 1);
  CHECK(schedule.at(101, 100, 0.25) == Approx(0.4));
  CHECK_THROWS_AS(schedule.at(5), Error);
}

}  // namespace
}  // namespace engram::transformer_xl_schedule_test

/// Spans that move while steps are captured and replayed.

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/training/session.hpp"
#include "core/kernels/fill.hpp"
#include "nn/past/span_extent.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::span_replay_test {
namespace {

TEST_CASE("windows come in steps: of 16, or powers of two where steps are captured") {
  for (std::int64_t positions = 1; positions <= 1000; ++positions) {
    const std::int64_t fine = stepped_window(positions, false), coarse = stepped_window(positions, true);
    CAPTURE(positions, fine, coarse);
    CHECK((fine >= positions && fine < positions + 16 && fine % 16 == 0));
    CHECK((coarse >= fine && coarse >= 64 && (coarse & (coarse - 1)) == 0));
    CHECK((coarse == 64 || coarse < 2 * positions));
  }
}

struct MovingRun {
  static constexpr int kSteps = 40;

  const RunFolder folder;
  data::DataSet data = data::DataSet::open(folder.data());
  RunConfig config = resolved_config(parse_run_config(small_config(), "test",
                                                      {"model.layers=1", "model.width=8", "model.heads=1",
                                                       "model.max_span=600", "model.span_init=0.15", "training.batch=1",
                                                       "training.block=4", "training.split=1", "schedule.steps=100"}),
                                     data);
  Runtime runtime;
  TrainingSession session{config, data, runtime, DType::f32};

  explicit MovingRun(Device device) : runtime(device, 0, config.training.seed) {}

  /// Losses of all steps, in each of which spans grow by 12 positions, from 100 on.
  std::vector<double> losses() {
    std::vector<double> all;
    for (int step = 0; step < kSteps; ++step) {
      Tensor spans = session.store.parameters().at("layers.0.attention.span")->value();
      kernels::fill(runtime.step(), spans, (100 + 12.0 * step) / 600);
      all.push_back(session.step().nll);
    }
    return all;
  }
};

TEST_CASE("moving spans: few steps are captured, most are replayed, and losses are those of single kernels", "[gpu]") {
  for (const Device device : other_devices()) {
    CAPTURE(text(device));
    MovingRun replaying(device), plain(device);
    plain.session.trainer.allow_replay(false);
    CHECK(replaying.losses() == plain.losses());
    CHECK(plain.session.trainer.replayed() == 0);
    // Windows of 128, 256, 512 and 600, caches of 256, 512 and 600: six ways to go together, each with two buffers that
    // take turns. In multiples of 64 there would be over ten, and none is met often enough.
    CAPTURE(replaying.session.trainer.captured(), replaying.session.trainer.replayed());
    CHECK(replaying.session.trainer.captured() <= 12);
    CHECK(replaying.session.trainer.replayed() >= 8);
    // Nothing was forgotten that a head could still see.
    CHECK(state_past(*replaying.session.trainer.pasts()[0][0]).shortfalls() == 0);
  }
}

}  // namespace
}  // namespace engram::harness::span_replay_test

/// Steps of several ranks on a device that works behind the host: what ranks say to each other goes between parts of a
/// captured step, so that replays have the bits of steps handed over one by one, whoever replays.

#include <string>
#include <vector>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/training/run_checkpoint.hpp"
#include "apps/run/training/session.hpp"
#include "tests/apps/run/other_devices.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/thread_ranks.hpp"

namespace engram::harness::rank_replay_test {
namespace {

/// What a rank has after some steps.
struct Trained {
  std::string bits;  // of the losses, then of all parameters
  std::int64_t replayed = 0;
};

/// Until a step is replayed: both buffers of the caches, each met three times.
constexpr int kSteps = 9;

Trained train(const RunConfig& config, const data::DataSet& data, Communicator& ranks, bool replay,
              const std::filesystem::path& file) {
  Runtime runtime(parse_device("simulated"), 1, config.training.seed, &ranks);
  TrainingSession session(config, data, runtime, DType::f32);
  session.trainer.allow_replay(replay);
  Trained trained;
  const auto append = [&trained](const void* data_of, std::size_t bytes) {
    trained.bits.append(static_cast<const char*>(data_of), bytes);
  };
  for (int i = 0; i < kSteps; ++i) {
    const StepLosses losses = session.step();
    append(&losses.nll, sizeof(losses.nll));
    append(&losses.span_loss, sizeof(losses.span_loss));
  }
  save_session(file, session);
  trained.replayed = session.trainer.replayed();
  return trained;
}

/// On as many ranks as `replays` has elements.
std::vector<Trained> train(const RunConfig& config, const data::DataSet& data, const std::vector<bool>& replays,
                           const std::filesystem::path& file) {
  std::vector<Trained> all(replays.size());
  run_ranks(static_cast<int>(replays.size()), [&](Communicator& ranks) {
    const auto own = static_cast<std::size_t>(ranks.rank());
    all[own] = train(config, data, ranks, replays[own], file);
  });
  return all;
}

TEST_CASE("ranks: replayed steps have the bits of steps one by one, and of one rank", "[ranks]") {
  if (!has_simulated_device()) return;
  const RunFolder folder;
  const data::DataSet data = data::DataSet::open(folder.data());
  struct Variant {
    const char* name;
    std::string config;
    std::vector<std::string> overrides;
  };
  const Variant variants[] = {
      {"all-attention", small_config(), {"training.batch=2", "training.block=20", "model.span_init=0.3"}},
      // Gradients of rows, and running statistics.
      {"product-key",
       R"([model]
family = "product_key"
layers = 2
width = 16
heads = 2
position_rows = 24
dropout = 0.1
[product_key]
count = 1
subkeys = 6
heads = 2
selected = 4
query_width = 8
[optimizer]
kind = "adam"
clip = 0.25
[schedule]
rate = 0.01
steps = 12
[training]
batch = 2
block = 12
split = 2
seed = 11
)",
       {}},
  };
  for (const Variant& variant : variants) {
    CAPTURE(variant.name);
    const RunConfig config = resolved_config(parse_run_config(variant.config, "test", variant.overrides), data);
    OneRank one;
    const Trained alone = train(config, data, one, false, folder / "alone");
    CHECK(alone.replayed == 0);
    // Where they disagree, each goes its way between the same exchanges.
    for (const std::vector<bool>& replays : {std::vector{true, true}, std::vector{false, true}}) {
      const std::vector<Trained> ranks = train(config, data, replays, folder / "ranks");
      CHECK(get_file(folder / "ranks") == get_file(folder / "alone"));
      for (std::size_t q = 0; q < ranks.size(); ++q) {
        CAPTURE(q, replays);
        CHECK(ranks[q].bits == alone.bits);
        CHECK((ranks[q].replayed > 0) == replays[q]);
      }
    }
  }
}

}  // namespace
}  // namespace engram::harness::rank_replay_test

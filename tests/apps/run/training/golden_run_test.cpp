/// Losses of twenty steps of tiny runs, stored in tests/golden with seven digits. They change only on purpose: the
/// hidden test case below writes them anew (run this program with "[.write-golden]").

#include <fmt/format.h>

#include <sstream>

#include "apps/run/config/run_config_file.hpp"
#include "apps/run/training/session.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/source_tree.hpp"

namespace engram::harness::golden_run_test {
namespace {

struct GoldenRun {
  const char* name;
  std::vector<std::string> overrides;
};

const GoldenRun kRuns[] = {
    {"all_attention_adagrad", {}},
    {"all_attention_adam",
     {"optimizer.kind=adam", "optimizer.clip=1", "schedule.rate=0.01", "model.pad=mask", "schedule.decay=cosine"}},
    {"transformer_adagrad", {"model.memory_mode=transformer", "model.slots=0", "model.inner=24", "training.split=1"}},
};

std::filesystem::path golden_file(const GoldenRun& run) {
  return std::filesystem::path(ENGRAM_SOURCE_DIR) / "tests" / "golden" / (std::string(run.name) + ".txt");
}

/// One line per step: the loss in nats and the mean span's part of the loss.
std::vector<StepLosses> losses_of(const GoldenRun& run) {
  const RunFolder folder(3000, 4);
  const data::DataSet data = data::DataSet::open(folder.data());
  const RunConfig config = resolved_config(parse_run_config(small_config(), run.name, run.overrides), data);
  Runtime runtime({}, 1, config.training.seed);
  TrainingSession session(config, data, runtime, DType::f32);
  std::vector<StepLosses> losses;
  for (int step = 0; step < 20; ++step) losses.push_back(session.step());
  return losses;
}

TEST_CASE("twenty steps of tiny runs have the stored losses") {
  for (const GoldenRun& run : kRuns) {
    std::istringstream stored(get_file(golden_file(run)));
    std::size_t step = 0;
    for (const StepLosses& losses : losses_of(run)) {
      double nll = 0, span_loss = 0;
      REQUIRE(stored >> nll >> span_loss);
      CAPTURE(run.name, ++step);
      // Other machines add up in another order.
      CHECK(losses.nll == Approx(nll).epsilon(1e-5));
      CHECK(losses.span_loss == Approx(span_loss).epsilon(1e-5).margin(1e-9));
    }
    std::string more;
    CHECK_FALSE(stored >> more);
  }
}

// Hidden because it makes what the case before it compares with; it writes only where it is named (put_into_tree).
TEST_CASE("write the golden losses", "[.write-golden]") {
  for (const GoldenRun& run : kRuns) {
    std::string lines;
    for (const StepLosses& losses : losses_of(run))
      lines += fmt::format("{:.7g} {:.7g}\n", losses.nll, losses.span_loss);
    source_tree::put_into_tree(golden_file(run), lines);
  }
}

}  // namespace
}  // namespace engram::harness::golden_run_test

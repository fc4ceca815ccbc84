/// Fine-tuning that begins on a plateau of the validation loss.

#include "apps/run/training/plateau.hpp"
#include "core/files/json.hpp"

#include <sstream>

#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "nn/checkpoint.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::plateau_test {
namespace {

TEST_CASE("a plateau is so many validations in a row without an improvement by the margin") {
  PlateauWatch watch(3, 0.01);
  const auto after = [&](double bits) {
    watch.add(bits);
    return watch.reached();
  };
  CHECK_FALSE(after(2.0));
  CHECK_FALSE(after(1.995));  // creeping: each step less than the margin
  CHECK_FALSE(after(1.992));
  CHECK_FALSE(after(1.98));  // better than 2.0 by more than the margin
  CHECK_FALSE(after(1.985));
  CHECK_FALSE(after(1.975));
  const nlohmann::json state = watch.state();
  CHECK(after(2.5));
  PlateauWatch again(3, 0.01);
  again.restore(state);
  CHECK_FALSE(again.reached());
  again.add(1.97);
  CHECK(again.reached());
  CHECK_THROWS_AS(again.restore(nlohmann::json{{"best", 1}}), UsageError);
}

std::vector<nlohmann::json> lines_of(const TrainingRunOptions& options, const char* event) {
  std::istringstream lines(get_file(options.out / "metrics.jsonl"));
  std::vector<nlohmann::json> found;
  for (std::string line; std::getline(lines, line);)
    if (auto object = nlohmann::json::parse(line); object["event"] == event) found.push_back(std::move(object));
  return found;
}

TEST_CASE("fine-tuning begins on a plateau, at its rate and length, also in a run that is resumed", "[night]") {
  const RunFolder folder;
  TrainingRunOptions whole = run_options(folder, "whole");
  // No improvement reaches the margin, so the third validation after the first is a plateau: step 4 * 3.
  whole.overrides = {"schedule.finetune=plateau", "schedule.plateau_validations=3", "schedule.plateau_margin=100",
                     "schedule.steps=1000",       "training.validate_every=3",      "training.finetune_steps=5",
                     "training.report_every=1"};
  CHECK(run_training(whole, never()).step == 17);
  REQUIRE(lines_of(whole, "finetune").size() == 1);
  CHECK(lines_of(whole, "finetune")[0]["step"] == 12);
  CHECK(lines_of(whole, "finetune")[0]["steps"] == 17);
  for (const nlohmann::json& line : lines_of(whole, "train")) {
    const std::int64_t step = line["step"];
    if (step >= 4) CHECK(line["learning_rate"].get<double>() == Approx(step <= 12 ? 0.07 : 0.007));
  }
  for (const int stop : {10, 12, 14}) {
    TrainingRunOptions parts = whole;
    parts.out = folder / text("parts", stop);
    CHECK_THROWS_AS(run_training(parts, after_steps(stop)), Interrupted);
    parts.resume = true;
    CHECK(run_training(parts, never()).step == 17);
    CHECK(get_file(checkpoint_path(parts.out, CheckpointKind::newest)) ==
          get_file(checkpoint_path(whole.out, CheckpointKind::newest)));
  }

  TrainingRunOptions steady = run_options(folder, "steady");
  steady.overrides = {"schedule.finetune=plateau", "schedule.plateau_validations=1000", "training.finetune_steps=2"};
  CHECK(run_training(steady, never()).step == 26);  // schedule.steps at the latest
  steady.out = folder / "decay";
  steady.overrides.push_back("schedule.decay=cosine");
  CHECK_THROWS_WITH(run_training(steady, never()), ContainsSubstring("plateau") && ContainsSubstring("decay"));
}

}  // namespace
}  // namespace engram::harness::plateau_test

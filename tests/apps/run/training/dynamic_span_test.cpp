/// Runs whose spans are computed for every query: reports, resuming, exact evaluation.

#include "apps/data/data_set.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/folder/metrics_reader.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::dynamic_span_test {
namespace {

TrainingRunOptions dynamic_run(const RunFolder& folder, const std::string& out) {
  TrainingRunOptions options = run_options(folder, out);
  options.overrides = {"model.span=dynamic", "schedule.rate=0.05", "training.report_every=1"};
  return options;
}

std::vector<double> mean_spans(const TrainingRunOptions& options) {
  std::vector<double> means;
  for (const nlohmann::json& line : read_reports(options.out / "metrics.jsonl", "train"))
    means.push_back(line.at("span_mean"));
  return means;
}

TEST_CASE(
    "dynamic spans: a resumed run reports the means of its last validation, and its bits are those of a whole one") {
  const RunFolder folder;
  const TrainingRunOptions whole = dynamic_run(folder, "whole");
  run_training(whole, never());
  TrainingRunOptions parts = dynamic_run(folder, "parts");
  CHECK_THROWS_AS(run_training(parts, after_steps(10)), Error);
  parts.resume = true;
  run_training(parts, never());
  const std::vector<double> expected = mean_spans(whole);
  REQUIRE(expected.size() == 24);
  CHECK(expected[20] != expected[3]);  // they have moved
  CHECK(mean_spans(parts) == expected);
  CHECK(get_file(checkpoint_path(parts.out, CheckpointKind::newest)) ==
        get_file(checkpoint_path(whole.out, CheckpointKind::newest)));
}

TEST_CASE("dynamic spans: exact evaluation does not depend on the number of streams") {
  const RunFolder folder(40000);
  const TrainingRunOptions options = dynamic_run(folder, "run");
  run_training(options, never());
  const data::DataSet data = data::DataSet::open(folder.data());
  const auto nll = [&](int rows) {
    Runtime runtime({}, 1);
    TrainedModel trained(options.out, CheckpointKind::newest, runtime, DType::f64);
    return evaluate_split(trained, data.split("test"), {.exact = true, .batch = rows, .block = 0}).result.nll();
  };
  const double one = nll(1);
  for (const int rows : {2, 5, 0}) CHECK(nll(rows) == Approx(one).epsilon(1e-12));
}

TEST_CASE("command line: spans of a run with dynamic spans are the means of its last validation") {
  const RunFolder folder;
  const TrainingRunOptions options = dynamic_run(folder, "run");
  run_training(options, never());
  const std::string run = options.out.string();
  const ProcessResult shown = run_engram({"spans", run, "--history", "--cost"});
  CHECK(shown.exit_code == 0);
  CHECK_THAT(shown.out, ContainsSubstring("computed for every query") && ContainsSubstring("as computed") &&
                            ContainsSubstring("spans of queries save none"));
  const auto object = nlohmann::json::parse(run_engram({"spans", run, "--json"}).out);
  CHECK(object["mean_positions"].get<double>() == Approx(mean_spans(options).back()));
  const ProcessResult best = run_engram({"spans", run, "--best"});
  CHECK(best.exit_code == 2);
  CHECK_THAT(best.err, ContainsSubstring("must hold the means of its spans"));
}

}  // namespace
}  // namespace engram::harness::dynamic_span_test

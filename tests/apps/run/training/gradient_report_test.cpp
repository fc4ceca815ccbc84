/// The gradient report of a run against gradients taken by hand.

#include "apps/run/training/gradient_report.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "core/files/json.hpp"

#include <cmath>

#include "apps/run/folder/metrics_reader.hpp"
#include "apps/run/training/gradient_history.hpp"
#include "apps/run/training/session.hpp"
#include "core/error.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/op_run.hpp"

namespace engram::harness::gradient_report_test {
namespace {

TEST_CASE("a gradient report has mean and largest norms, shares of clipped steps, and both parts of the spans'") {
  const RunFolder folder;
  const data::DataSet data = data::DataSet::open(folder.data());
  RunConfig config = parse_run_config(small_config(), "the test", {"optimizer.clip=0.05", "model.span_init=0.4"});
  config = resolved_config(config, data);
  Runtime runtime({}, 1, 11);
  TrainingSession session(config, data, runtime, DType::f64);
  GradientReport report(session.config, session.store);
  const std::string watched = "layers.1.attention.query", span = "layers.0.attention.span";
  double sum = 0, largest = 0;
  int clipped = 0;
  for (int step = 0; step < 7; ++step) {
    session.step();
    report.add(session.trainer.optimizer(), runtime.backend());
    const double norm = reference::norm(to_host(runtime.backend(), session.store.find(watched)->gradient()));
    sum += norm;
    largest = std::max(largest, norm);
    clipped += norm > 0.05;
  }
  const nlohmann::json taken = report.take(runtime.backend());
  CHECK(taken["steps"] == 7);
  bool found = false;
  for (const nlohmann::json& tensor : taken["tensors"]) {
    if (tensor["name"] != watched) continue;
    found = true;
    CHECK(tensor["norm"].get<double>() == Approx(sum / 7).epsilon(1e-10));
    CHECK(tensor["largest"].get<double>() == Approx(largest).epsilon(1e-10));
    CHECK(tensor["clipped"].get<double>() == Approx(clipped / 7.0));
  }
  CHECK(found);
  CHECK(taken["tensors"].size() == session.store.parameters().size());
  // lambda S / H.
  CHECK(taken["spans"][0]["penalty"].get<double>() == Approx(1e-4 * 48 / 2));
  const reference::Array64 whole = to_host(runtime.backend(), session.store.find(span)->gradient());
  for (const std::size_t head : {0, 1})
    CHECK(taken["spans"][0]["task"][head].get<double>() + 1e-4 * 48 / 2 == Approx(whole.data[head]).margin(1e-12));
  CHECK(report.take(runtime.backend())["steps"] == 0);
}

TEST_CASE("the task's part of a span's gradient is that of a run without span loss") {
  const RunFolder folder;
  const data::DataSet data = data::DataSet::open(folder.data());
  std::vector<std::vector<double>> tasks;
  for (const char* span_loss : {"training.span_loss=0", "training.span_loss=0.01"}) {
    const RunConfig config =
        resolved_config(parse_run_config(small_config(), "the test", {span_loss, "model.span_init=0.4"}), data);
    Runtime runtime({}, 1, 11);
    TrainingSession session(config, data, runtime, DType::f64);
    GradientReport report(session.config, session.store);
    session.step();
    report.add(session.trainer.optimizer(), runtime.backend());
    tasks.push_back(report.take(runtime.backend())["spans"][1]["task"].get<std::vector<double>>());
  }
  for (const std::size_t head : {0, 1}) {
    CHECK(std::abs(tasks[0][head]) > 1e-6);
    CHECK(tasks[1][head] == Approx(tasks[0][head]).epsilon(1e-9));
  }
}

TEST_CASE("command line: engram gradients shows the reports of a run, and says how to get them") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  run_training(options, never());
  const ProcessResult none = run_engram({"gradients", options.out.string()});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, ContainsSubstring("training.gradient_report=true"));
  options.resume = true;
  options.overrides = {"training.gradient_report=true", "schedule.steps=34"};
  run_training(options, never());
  const ProcessResult shown = run_engram({"gradients", options.out.string(), "--csv", (folder / "g.csv").string()});
  CHECK(shown.exit_code == 0);
  CHECK_THAT(shown.out, ContainsSubstring("layers.0.attention.persistent_keys") && ContainsSubstring("penalty") &&
                            ContainsSubstring("up to step 34"));
  CHECK_THAT(get_file(folder / "g.csv"),
             ContainsSubstring("30,position_keys,") && ContainsSubstring("34,embedding.weight,"));
  const auto reports = nlohmann::json::parse(run_engram({"gradients", options.out.string(), "--json"}).out);
  REQUIRE(reports["reports"].size() == 3);
  CHECK(reports["reports"][0]["steps"] == 1);
  CHECK(reports["reports"][2]["steps"] == 4);

  // Clipped together, what a tensor's share is says nothing of it.
  const auto table = [](const char* kind) {
    return table_of(GradientHistory{"run",
                                    {{{"steps", 2},
                                      {"step", 9},
                                      {"clip", 1.0},
                                      {"clip_kind", kind},
                                      {"tensors", {{{"name", "w"}, {"norm", 0.1}, {"largest", 0.2}, {"clipped", 0.5}}}},
                                      {"spans", nlohmann::json::array()}}}});
  };
  CHECK_THAT(table("global"), ContainsSubstring("clipped together, by the norm of all: 50.0% of the steps") &&
                                  !ContainsSubstring("largest  clipped"));
  CHECK_THAT(table("per_tensor"), ContainsSubstring("largest  clipped\n") && ContainsSubstring("    50.0%"));
}

}  // namespace
}  // namespace engram::harness::gradient_report_test

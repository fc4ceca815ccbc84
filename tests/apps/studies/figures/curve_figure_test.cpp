/// Training curves against their logs: what a resumed run took back, seeds, smoothing, time, and what is no number.

#include "apps/studies/figures/curve_figure.hpp"

#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::curve_figure_test {
namespace {

/// Folders with logs, and what a curve is asked of them.
struct WrittenLogs : TemporaryFolder {
  std::vector<FigureRun> runs;

  void add(const std::string& folder, const std::string& name, const std::string& lines) {
    std::filesystem::create_directory(path() / folder);
    put_file(path() / folder / "metrics.jsonl", "{\"event\":\"start\",\"step\":0}\n" + lines);
    runs.push_back({path() / folder, name});
  }
  Figure figure(const std::vector<std::string>& metrics, CurveAxis axis = CurveAxis::steps,
                std::int64_t smooth = 1) const {
    return curve_figure({.runs = runs, .metrics = metrics, .axis = axis, .smooth = smooth});
  }
};

std::string line_of(const std::string& event, int step, const std::string& members) {
  return text("{\"event\":\"", event, "\",\"step\":", step, ",", members, "}\n");
}
std::string valid(int step, double bpc, double seconds = 0) {
  return line_of("valid_short", step, text("\"nll\":1,\"bpc\":", bpc, ",\"seconds\":", seconds));
}

std::vector<std::pair<double, double>> points_of(const PlotSeries& series) {
  std::vector<std::pair<double, double>> points;
  for (const PlotPoint& point : series.points) points.emplace_back(point.x, point.y);
  return points;
}
using Line = std::vector<std::pair<double, double>>;

}  // namespace

TEST_CASE("figure curves: points are those of the log, without what a resumed run took back") {
  WrittenLogs logs;
  logs.add("a", "a",
           valid(10, 3) + valid(20, 9) + "{\"event\":\"resume\",\"step\":10}\n" + valid(20, 2.5) + valid(30, 2));
  logs.add("b", "b", valid(10, 2.75));
  const Figure figure = logs.figure({});
  CHECK(figure.panels[0].y.title == "bits per character, valid");
  REQUIRE(figure.panels[0].series.size() == 2);
  CHECK(points_of(figure.panels[0].series[0]) == Line{{10, 3}, {20, 2.5}, {30, 2}});
  CHECK(points_of(figure.panels[0].series[1]) == Line{{10, 2.75}});
  CHECK(figure.what == "as reported while training");
}

TEST_CASE("figure curves: runs of one name are their mean at steps that all have, with the range") {
  WrittenLogs logs;
  logs.add("a", "x", valid(10, 3, 100) + valid(20, 2, 200));
  logs.add("b", "x", valid(10, 5, 300) + valid(20, 2.5, 400) + valid(30, 1, 500));
  const Figure figure = logs.figure({"valid_bpc"});
  const PlotSeries& series = figure.panels[0].series.at(0);
  CHECK(points_of(series) == Line{{10, 4}, {20, 2.25}});
  REQUIRE(series.points[0].up);
  CHECK(*series.points[0].up == PlotRange{3, 5});
  CHECK(series.points[0].runs == 2);
  CHECK(figure.what == "mean of 2 seeds, bands from the least to the most");
  CHECK(figure.left_out == std::vector<std::string>{"x: 1 step that not all of its seeds report"});
  CHECK(points_of(logs.figure({"bpc"}, CurveAxis::seconds).panels[0].series[0]) == Line{{200, 4}, {300, 2.25}});
}

TEST_CASE("figure curves: each smoothed point is the mean of the reports around it") {
  WrittenLogs logs;
  logs.add("a", "a", valid(1, 1) + valid(2, 2) + valid(3, 6) + valid(4, 1) + valid(5, 0));
  CHECK(points_of(logs.figure({"bpc"}, CurveAxis::steps, 3).panels[0].series[0]) ==
        Line{{1, 1}, {2, 3}, {3, 3}, {4, 7.0 / 3}, {5, 0}});
  CHECK(points_of(logs.figure({"bpc"}, CurveAxis::steps, 9).panels[0].series[0])[2] == std::pair(3.0, 2.0));
  CHECK_THAT(logs.figure({"bpc"}, CurveAxis::steps, 3).what, ContainsSubstring("the mean of 3 reports"));
}

TEST_CASE("figure curves: what is no number, no report and not there is told") {
  WrittenLogs logs;
  logs.add("a", "a", valid(1, 1) + line_of("valid_short", 2, "\"nll\":null,\"bpc\":null") + "no report\n");
  logs.add("b", "b", line_of("train", 5, "\"learning_rate\":0.1"));
  std::filesystem::create_directory(logs.path() / "c");
  logs.runs.push_back({logs.path() / "c", "c"});
  const Figure figure = logs.figure({});
  std::string all;
  for (const std::string& line : figure.left_out) all += line + "\n";
  CHECK_THAT(all, ContainsSubstring("/a: 1 report of valid_bpc without a number") &&
                      ContainsSubstring("/b: no valid_bpc") && ContainsSubstring("/c: it has no metrics.jsonl") &&
                      ContainsSubstring("is no report and is left out"));
  CHECK(points_of(figure.panels[0].series[0]) == Line{{1, 1}});
}

TEST_CASE("figure curves: a metric may be named shortly, of memories by layer, and unknown ones are told") {
  WrittenLogs logs;
  logs.add("a", "a",
           line_of("train", 5, "\"nll\":2,\"learning_rate\":0.1") +
               line_of("valid_short", 5, "\"nll\":1,\"memory_layers\":[2,6],\"memory_usage\":[0.5,0.25]"));
  CHECK(points_of(logs.figure({"learning_rate"}).panels[0].series[0]) == Line{{5, 0.1}});
  CHECK(points_of(logs.figure({"memory_usage_6"}).panels[0].series[0]) == Line{{5, 0.25}});
  const auto refusal = [&](const std::string& metric) {
    return message_of<UsageError>([&] { logs.figure({metric}); });
  };
  CHECK_THAT(refusal("nll"), ContainsSubstring("train_nll or valid_nll"));
  CHECK_THAT(refusal("valid_nl"),
             ContainsSubstring("the nearest is 'valid_nll'") && ContainsSubstring("train_learning_rate"));
  CHECK_THAT(message_of<UsageError>([&] { logs.figure({}); }), ContainsSubstring("no report of a loss"));
  WrittenLogs mixed;
  mixed.add("a", "a", valid(1, 1));
  mixed.add("b", "b", line_of("valid_short", 1, "\"ppl\":9"));
  CHECK_THAT(message_of<UsageError>([&] { mixed.figure({}); }), ContainsSubstring("must have one score"));
}

TEST_CASE("figure curves: runs are called by their folders, and a sweep's by their variants") {
  const TemporaryFolder folder;
  for (const char* const run : {"one/run", "two/run", "sweep/v-seed-1", "sweep/v-seed-2"}) {
    std::filesystem::create_directories(folder / run);
    put_file(folder / run / "metrics.jsonl", "");
  }
  put_file(folder / "sweep/runs.csv", "variant,folder\nv,v-seed-1\nv,v-seed-2\n");
  const std::vector<std::string> arguments{(folder / "one/run").string(), (folder / "two/run/").string(),
                                           (folder / "sweep").string()};
  const auto names_of_runs = [&](const std::vector<std::string>& given) {
    std::vector<std::string> names;
    for (const FigureRun& run : find_figure_runs(arguments, given)) names.push_back(run.name);
    return names;
  };
  using Names = std::vector<std::string>;
  CHECK(names_of_runs({}) == Names{"one/run", "two/run", "v", "v"});
  CHECK(names_of_runs({"a", "b", "c"}) == Names{"a", "b", "c", "c"});
  CHECK(names_of_runs({"a", "a", "c", "d"}) == Names{"a", "a", "c", "d"});
  CHECK(find_figure_runs({arguments[0], arguments[0] + "/"}).size() == 1);
  CHECK_THAT(message_of<UsageError>([&] { names_of_runs({"a"}); }),
             ContainsSubstring("each of the 4 runs or of the 3"));
  CHECK_THAT(message_of<UsageError>([&] { find_figure_runs({folder.path().string()}, {}); }),
             ContainsSubstring("must be the folder of a run or of a sweep"));
}

}  // namespace engram::harness::curve_figure_test

/// Logs as a page reads them, while they grow, and the series that it keeps of them.

#include "apps/studies/page/run_log.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>

#include "apps/studies/page/packed_series.hpp"
#include "core/error.hpp"
#include "tests/apps/studies/page/page_contents.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::run_log_test {
namespace {

namespace fs = std::filesystem;

std::string train_line(std::int64_t step, double nll) {
  return text("{\"event\":\"train\",\"step\":", step, ",\"nll\":", nll, ",\"bpc\":1,\"seconds\":", step, ".5}\n");
}
std::string mark_line(std::string_view event, std::int64_t step) {
  return text("{\"event\":\"", event, "\",\"step\":", step, ",\"steps\":90}\n");
}

std::vector<std::int64_t> steps_of(const RunLog& log) {
  std::vector<std::int64_t> steps;
  for (const TrainReport& report : log.train()) steps.push_back(report.step);
  return steps;
}

TEST_CASE("a log is read as it grows: torn lines wait, what a resumed run took back goes") {
  const TemporaryFolder folder;
  const auto file = put_file(folder / "metrics.jsonl", mark_line("start", 0) + train_line(10, 3) + train_line(20, 2));
  const auto append = [&file](std::string_view bytes) {
    std::ofstream(file, std::ios::app | std::ios::binary) << bytes;
  };
  RunLog log(file);
  CHECK(log.update());
  CHECK(!log.update());
  CHECK(steps_of(log) == std::vector<std::int64_t>{10, 20});
  CHECK(log.score() == "bpc");
  CHECK(log.train()[1].seconds == 20.5);
  CHECK(std::isnan(log.train()[1].gradient_norm));
  const std::string torn = train_line(30, 1);
  append(torn.substr(0, 20));
  CHECK(!log.update());
  append(torn.substr(20));
  CHECK(log.update());
  CHECK(steps_of(log) == std::vector<std::int64_t>{10, 20, 30});
  append(mark_line("resume", 10) + train_line(20, 1.5));
  CHECK(log.update());
  CHECK(steps_of(log) == std::vector<std::int64_t>{10, 20});
  CHECK(log.train()[1].loss == 1.5);
  CHECK(log.marks().size() == 2);
  // A run that begins again in the same folder, and a file that is shorter than it was.
  append(mark_line("start", 0) + train_line(5, 9));
  CHECK(log.update());
  CHECK(steps_of(log) == std::vector<std::int64_t>{5});
  CHECK(log.marks().size() == 1);
  put_file(file, train_line(7, 8));
  CHECK(log.update());
  CHECK(steps_of(log) == std::vector<std::int64_t>{7});
  CHECK(log.problem().empty());
}

TEST_CASE("what a resumed run took back goes from all columns") {
  const TemporaryFolder folder;
  const auto line = [](std::string_view event, int step, std::string_view more) {
    return text("{\"event\":\"", event, "\",\"step\":", step, more, "}\n");
  };
  std::string lines = mark_line("start", 0);
  for (const int step : {10, 20})
    lines += line("train", step, ",\"nll\":1,\"bpc\":1,\"spans\":[[1,2]]") + line("valid_short", step, ",\"nll\":1") +
             line("sample", step, ",\"text\":\"a\"");
  const auto file = put_file(folder / "metrics.jsonl", lines + line("gradients", 10, ",\"tensors\":[]"));
  const auto append = [&file](const std::string& more) { std::ofstream(file, std::ios::app) << more; };
  RunLog log(file);
  CHECK(log.update());
  CHECK((log.valid().size() == 2 && log.spans().size() == 2 && log.samples().size() == 2));
  append(mark_line("resume", 10));
  CHECK(log.update());
  CHECK((log.train().size() == 1 && log.valid().size() == 1 && log.spans().size() == 1 && log.samples().size() == 1));
  CHECK(log.spans()[0].heads == std::vector<std::vector<double>>{{1, 2}});
  CHECK(log.gradients().is_object());
  append(line("gradients", 30, ",\"tensors\":[]") + mark_line("resume", 20));
  CHECK(log.update());
  CHECK(log.gradients().is_null());
}

TEST_CASE("a log that is put in the place of another one is read from its start, however long it is") {
  const TemporaryFolder folder;
  const std::string lines = mark_line("start", 0) + train_line(10, 3),
                    longer = lines + train_line(20, 2) + train_line(30, 1);
  const auto file = put_file(folder / "metrics.jsonl", lines);
  RunLog log(file);
  CHECK(log.update());
  // Another file, of the same first line.
  fs::rename(put_file(folder / "other", mark_line("start", 0) + train_line(11, 4) + train_line(12, 4)), file);
  CHECK(log.update());
  CHECK(steps_of(log) == std::vector<std::int64_t>{11, 12});
  // As long, to the byte.
  fs::rename(put_file(folder / "other", mark_line("start", 0) + train_line(21, 4) + train_line(22, 4)), file);
  CHECK(log.update());
  CHECK(steps_of(log) == std::vector<std::int64_t>{21, 22});
  // Other bytes in the same file, as cp writes them.
  std::ofstream(file, std::ios::trunc) << mark_line("start", 1) + train_line(31, 4) + train_line(32, 4) +
                                              train_line(33, 4);
  CHECK(log.update());
  CHECK(steps_of(log) == std::vector<std::int64_t>{31, 32, 33});
  CHECK(!log.update());
}

TEST_CASE("a line without end is not kept, and what follows it counts") {
  const TemporaryFolder folder;
  const auto file = put_file(folder / "metrics.jsonl", train_line(10, 3));
  const auto append = [&file](const std::string& more) { std::ofstream(file, std::ios::app) << more; };
  RunLog log(file);
  CHECK(log.update());
  const std::string much(12'000'000, 'x');
  append(much);
  CHECK(!log.update());
  append(much);
  CHECK(!log.update());
  append("\n" + train_line(20, 2));
  CHECK(log.update());
  CHECK(steps_of(log) == std::vector<std::int64_t>{10, 20});
  CHECK_THAT(log.problem(), ContainsSubstring("line 2 of '") && ContainsSubstring("it is longer than 16777216 bytes"));
}

TEST_CASE("a line that is no report is one problem, and those around it are shown") {
  const TemporaryFolder folder;
  const auto file = put_file(folder / "metrics.jsonl",
                             train_line(10, 3) + "{\"event\":\"train\",\"st\n" + train_line(20, 2) + "[]\n\n" +
                                 "{\"event\":\"train\",\"step\":\"x\"}\n" +
                                 "{\"event\":\"train\",\"step\":30,\"nll\":1,\"spans\":[[1,null]]}\n{\"event\":\"valid_"
                                 "short\",\"step\":20,\"nll\":null}\n" +
                                 "{\"event\":\"sample\",\"step\":20,\"prompt\":\"</script>\",\"text\":7}\n");
  RunLog log(file);
  CHECK(log.update());
  CHECK(steps_of(log) == std::vector<std::int64_t>{10, 20});
  CHECK_THAT(log.problem(), ContainsSubstring("line 2 of '" + file.string() + "' is no report") &&
                                ContainsSubstring("it is no JSON; so are 4 more lines"));
  // Nothing of a line that is left out is there.
  CHECK(log.spans().empty());
  CHECK(count_of(log.problem(), "\n") == 0);
  REQUIRE(log.valid().size() == 1);
  CHECK(std::isnan(log.valid()[0].loss));
  REQUIRE(log.samples().size() == 1);
  CHECK(log.samples()[0].prompt == "</script>");
  CHECK(log.samples()[0].text.empty());
  RunLog missing(folder / "nothing");
  CHECK(!missing.update());
  CHECK(missing.problem().empty());
  RunLog inside_a_file(file / "nothing");
  CHECK(!inside_a_file.update());
  CHECK_THAT(inside_a_file.problem(), ContainsSubstring("must be readable"));
}

TEST_CASE("thinned series keep every peak, the ends and the order") {
  Points points;
  for (int i = 0; i < 100000; ++i) points.add(i, std::sin(i * 0.37));
  points.y[1] = 50;
  points.y[77777] = 100;
  points.y[55555] = -100;
  const Points kept = decimated(points);
  CHECK(kept.x.size() <= kMostPoints);
  CHECK(kept.x.size() > kMostPoints / 2);
  CHECK(std::ranges::is_sorted(kept.x, std::less<>()));
  CHECK(std::ranges::adjacent_find(kept.x) == kept.x.end());
  CHECK((kept.x.front() == 0 && kept.x.back() == 99999));
  for (const double peak : {50., 100., -100.}) CHECK(std::ranges::count(kept.y, peak) == 1);
  for (std::size_t i = 0; i < kept.x.size(); ++i) REQUIRE(kept.y[i] == points.y[std::size_t(kept.x[i])]);
  Points few;
  for (int i = 0; i < 7; ++i) few.add(i, -i);
  CHECK(decimated(few, 7).x == few.x);
  CHECK(decimated(few, 4).x.size() <= 4);
}

TEST_CASE("packed numbers are little-endian f32, NaN and infinities among them") {
  const std::vector<double> numbers{0, -1.5, 3.2144329884872915, 1e300, std::nan(""), 16777216};
  const std::vector<float> found = unpacked_floats(packed_floats(numbers));
  REQUIRE(found.size() == numbers.size());
  for (const std::size_t i : {0u, 1u, 2u, 5u}) CHECK(found[i] == static_cast<float>(numbers[i]));
  CHECK(found[3] == std::numeric_limits<float>::infinity());
  CHECK(std::isnan(found[4]));
}

}  // namespace
}  // namespace engram::harness::run_log_test

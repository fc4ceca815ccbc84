/// What metrics.jsonl says of when, where and how a run was made, and of the time that it took.

#include <filesystem>
#include <regex>

#include "apps/data/data_set.hpp"
#include "apps/data/files/hash.hpp"
#include "apps/run/folder/build_facts.hpp"
#include "apps/run/folder/metrics_log.hpp"
#include "apps/run/folder/metrics_reader.hpp"
#include "apps/run/folder/provenance.hpp"
#include "apps/terminal/signals.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/harness/catch.hpp"

namespace engram::harness::provenance_test {
namespace {

using nlohmann::json;

bool is_time(const std::string& written) {
  static const std::regex rfc_3339(R"(20\d\d-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-6]\dZ)");
  return std::regex_match(written, rfc_3339);
}

std::vector<json> lines_of(const std::filesystem::path& run) {
  std::vector<json> lines;
  read_metrics(run / "metrics.jsonl", [&](const json& line) { lines.push_back(line); });
  return lines;
}

TEST_CASE("provenance: a run says when, where, by what and of what it is") {
  const RunFolder folder;
  TrainingRunOptions options = run_options(folder, "run");
  CHECK_THROWS_AS(run_training(options, after_steps(12)), Interrupted);
  options.resume = true;
  run_training(options, never());

  const std::vector<json> lines = lines_of(options.out);
  std::vector<json> starts;
  double seconds = 0;
  for (const json& line : lines) {
    INFO(line.dump());
    CHECK(is_time(line.at("time")));
    const std::string event = line.at("event");
    if (event == "start" || event == "resume") starts.push_back(line);
    if (event != "train" && event != "valid_short" && event != "interrupted" && event != "end") continue;
    // Of the whole run: it never begins anew, and training takes time.
    CHECK(line.at("seconds").get<double>() >= seconds);
    CHECK((event != "train" || line.at("seconds").get<double>() > seconds));
    seconds = line.at("seconds");
  }
  CHECK(lines.back().at("event") == "end");
  CHECK(lines.back().at("resident_bytes").get<double>() > lines.back().at("peak_bytes").get<double>());
  REQUIRE(starts.size() == 2);
  for (const json& start : starts) {
    CHECK_THAT(start.at("command").at(0).get<std::string>(), ContainsSubstring("engram_tests_apps"));
    CHECK(start.at("version") == build_facts().version);
    CHECK(start.at("commit") == build_facts().commit);
    CHECK(start.at("compiler") == build_facts().compiler);
    for (const char* name : {"host", "processor", "build"}) CHECK_FALSE(start.at(name).get<std::string>().empty());
    CHECK(start.at("directory") == std::filesystem::current_path().string());
    CHECK(start.at("processors").get<int>() >= 1);
    CHECK(start.at("threads") == 1);
    CHECK(start.at("device") == "cpu");
    CHECK(start.at("dtype") == "f32");
    CHECK(start.at("products") == "f32");
    CHECK(start.at("activations") == "f32");
    CHECK(start.at("data") == data::hash_text(data::DataSet::open(options.data).hash()));
    CHECK(start.at("config") == data::hash_text(data::hash_of(get_file(options.out / "config.toml"))));
  }
}

TEST_CASE("provenance: seconds are those of the steps that count; older logs have none") {
  const TemporaryFolder folder;
  const auto train = [](int step, double seconds) {
    return text(R"({"event":"train","step":)", step, R"(,"seconds":)", seconds, "}\n");
  };
  const std::string start = "{\"event\":\"start\",\"step\":0}\n", resume = "{\"event\":\"resume\",\"step\":10}\n";
  const auto path = put_file(folder / "metrics.jsonl",
                             train(5, 99) + start + train(10, 2) + train(20, 5) + resume + train(20, 4) + train(30, 6));
  CHECK(training_seconds(path, 30) == 6);
  CHECK(training_seconds(path, 29) == 4);
  CHECK(training_seconds(path, 10) == 2);
  CHECK(training_seconds(path, 9) == 0);
  const auto old = put_file(folder / "old.jsonl", start + "{\"event\":\"train\",\"step\":10}\n");
  CHECK(training_seconds(old, 10) == 0);
  CHECK(read_reports(old, "train").size() == 1);
}

TEST_CASE("provenance: bytes of a command that are no text do not stop a run") {
  const TemporaryFolder folder;
  MetricsLog(folder / "metrics.jsonl").append({{"command", {"train", "--out", "\xff\xfe"}}});
  CHECK(lines_of(folder.path()).at(0).at("command").at(2) == "\xef\xbf\xbd\xef\xbf\xbd");
}

TEST_CASE("provenance: a process whose folder was removed says none") {
  const std::filesystem::path before = std::filesystem::current_path();
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "gone");
  std::filesystem::current_path(folder / "gone");
  CHECK(working_directory() == std::filesystem::canonical(folder / "gone").string());
  std::filesystem::remove(folder / "gone");
  CHECK(working_directory().empty());
  CHECK_FALSE(provenance().contains("directory"));
  std::filesystem::current_path(before);
}

TEST_CASE("provenance: a processor's name") {
  CHECK(processor_name("processor\t: 0\nmodel name\t: Some CPU @ 2: 3 GHz\nflags\t: a\nmodel name\t: B\n") ==
        "Some CPU @ 2: 3 GHz");
  CHECK(processor_name("processor\t: 0\nmodel name\t: last") == "last");
  CHECK(processor_name("processor\t: 0\nCPU implementer\t: 0x41\n").empty());
  CHECK(processor_name("").empty());
}

}  // namespace
}  // namespace engram::harness::provenance_test

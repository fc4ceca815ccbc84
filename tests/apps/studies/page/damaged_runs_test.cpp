/// Runs with a log, a configuration or a name that is not as Engram writes it, and what a page says of them.

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "apps/run/folder/run_lock.hpp"
#include "apps/studies/page/page_html.hpp"
#include "apps/studies/page/page_text.hpp"
#include "core/error.hpp"
#include "tests/apps/commands/command_line_process.hpp"
#include "tests/apps/run/run_fixture.hpp"
#include "tests/apps/studies/page/page_contents.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::damaged_runs_test {
namespace {

namespace fs = std::filesystem;

Page page_of(const std::vector<std::string>& arguments) {
  Page page;
  for (const PageSource& source : find_sources(arguments).runs) page.runs.push_back(open_run(source));
  return page;
}

constexpr const char* kStart = "{\"event\":\"start\",\"step\":0,\"steps\":100,\"parameters\":9}\n";
std::string train_line(std::int64_t step) {
  return text("{\"event\":\"train\",\"step\":", step, ",\"nll\":2,\"bpc\":2}\n");
}

/// A run of its own, whose log is these lines.
class LoggedRun {
 public:
  explicit LoggedRun(const std::string& lines) {
    fs::create_directories(place());
    put_file(log(), lines);
  }
  fs::path place() const { return folder_ / "run"; }
  fs::path log() const { return place() / "metrics.jsonl"; }
  PageRun open() const { return page_of({place().string()}).runs.at(0); }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("numbers that no run can have are lines that are left out, and are not shown") {
  for (const char* const line :
       {R"({"event":"train","step":1e300,"nll":1,"bpc":1})", R"({"event":"train","step":-4,"nll":1,"bpc":1})",
        R"({"event":"train","step":18446744073709551615,"nll":1,"bpc":1})", R"({"event":"train","step":2.5,"nll":1})",
        R"({"event":"train","step":null,"nll":1})", R"({"event":"resume","step":10,"steps":1e300})",
        R"({"event":"start","step":0,"parameters":-1})",
        R"({"event":"valid_short","step":20,"nll":1,"memory_layers":[1e300],"memory_usage":[1]})"}) {
    CAPTURE(line);
    const LoggedRun files(kStart + train_line(10) + line + "\n" + train_line(20));
    const PageRun run = files.open();
    CHECK_THAT(run.log.problem(), ContainsSubstring("line 3 of '"));
    CHECK(run.log.train().size() == 2);
    CHECK(run.log.valid().empty());
    const RunSummary summary = summary_of(run);
    CHECK((summary.step == 20 && summary.planned == 100 && summary.parameters == 9));
  }
  // Numbers that are only written for people have no end.
  const LoggedRun files(
      kStart + std::string(R"({"event":"train","step":10,"nll":1,"bpc":1,"seconds":1e300,)"
                           R"("tokens_per_second":1e300})"
                           "\n"
                           R"({"event":"end","step":9007199254740992,"peak_bytes":1e300,"resident_bytes":1e300})"
                           "\n"));
  put_file(files.place() / "config.toml", "");
  const std::string html = html_of(page_of({files.place().string()}));
  CHECK_THAT(html, ContainsSubstring("1.00e+300") && !ContainsSubstring("-9,223,372"));
  CHECK(html.find("00000000000000000000") == std::string::npos);
  CHECK(whole_text(12345.4) == "12,345");
  CHECK(whole_text(-1e300) == "-1.00e+300");
  CHECK(duration_text(1e300) == "1.00e+300 s");
  CHECK(shortened(1e300) == "1.00e+300");
  CHECK(shortened(2.5e12) == "2.50 T");
}

TEST_CASE("a run that ended before its planned steps is done, and the page says that it was early") {
  const LoggedRun early(kStart + train_line(5) + "{\"event\":\"end\",\"step\":5}\n");
  const std::string html = html_of(page_of({early.place().string()}));
  CHECK_THAT(html, ContainsSubstring("is done at step 5: it ended before the planned 100 steps") &&
                       !ContainsSubstring("all planned steps."));
  const LoggedRun whole(kStart + train_line(100) + "{\"event\":\"end\",\"step\":100}\n");
  CHECK_THAT(html_of(page_of({whole.place().string()})), ContainsSubstring("The run is done: all planned steps."));
  CHECK_THAT(html_of(page_of({early.place().string(), whole.place().string()})),
             ContainsSubstring("1 of 2 is done: all planned steps."));
}

TEST_CASE("pipes in the place of a run's files are not waited for") {
  const LoggedRun files(kStart + train_line(5));
  for (const char* const name : {"config.toml", "../runs.csv"})
    REQUIRE(::mkfifo((files.place() / name).c_str(), 0600) == 0);
  PageRun run = files.open();
  REQUIRE(run.problems.size() == 2);
  for (const std::string& problem : run.problems) CHECK_THAT(problem, ContainsSubstring("got a pipe"));
  CHECK(run.log.train().size() == 1);
  fs::remove(files.log());
  REQUIRE(::mkfifo(files.log().c_str(), 0600) == 0);
  update(run);
  CHECK_THAT(run.log.problem(), ContainsSubstring("got 'not a regular file'"));
}

TEST_CASE("a run is the same one with a slash or a dot behind its name") {
  const TemporaryFolder folder;
  fs::create_directories(folder / "s" / "a" / "best");
  put_file(folder / "s" / "a" / "metrics.jsonl", kStart);
  put_file(folder / "s" / "runs.csv", "variant,folder,test_bpc,best_test_bpc\na,a,2.5,2.25\n");
  for (const char* const name : {"s/a", "s/a/", "s/a//", "s/a/.", "s/a/./", "s/a/best/.."}) {
    CAPTURE(name);
    const PageSources found = find_sources({(folder / name).string()});
    REQUIRE(found.runs.size() == 1);
    CHECK(found.runs[0].name == "a");
    CHECK(summary_of(open_run(found.runs[0])).test == 2.25);
  }
  // A checkpoint in a folder of its own has that folder's name, and its run's.
  put_file(folder / "s" / "a" / "best" / "model.safetensors", std::string_view("\x02\0\0\0\0\0\0\0{}", 10));
  const std::string run = (folder / "s" / "a").string();
  for (const char* const best : {"/best", "/best/", "/best/model.safetensors"}) {
    const PageSources found = find_sources({run, run + best});
    REQUIRE(found.runs.size() == 2);
    CHECK(found.runs[0].name == "a");
    CHECK(found.runs[1].name == "a/best");
  }
}

TEST_CASE("--only-logs opens no checkpoint of a run that has a log") {
  const RunFolder folder;
  run_training(run_options(folder, "run"), never());
  const fs::path checkpoint = checkpoint_path(folder / "run", CheckpointKind::newest);
  const auto report = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"report", (folder / "run").string(), "--length", "3",
                                   "--out",  (folder / "p").string()};
    words.insert(words.end(), more.begin(), more.end());
    return run_engram(words);
  };
  put_file(checkpoint, "no checkpoint at all");
  CHECK_THAT(report({}).err, ContainsSubstring(checkpoint.string()));
  const auto result = report({"--only-logs"});
  CHECK(result.exit_code == 0);
  CHECK(result.err.empty());
  CHECK(data_of(get_file(folder / "p")).at("runs").at(0).at("train").contains("loss"));
}

TEST_CASE("a lock of another file system's file is not the run's") {
  const TemporaryFolder folder;
  CHECK(!is_locked(folder.path()));
  const RunLock lock(folder.path());
  REQUIRE(is_locked(folder.path()));
  struct statx facts {};
  REQUIRE(::statx(AT_FDCWD, (folder / "lock").c_str(), 0, STATX_INO | STATX_MNT_ID, &facts) == 0);
  const std::string inode = text(":", static_cast<std::uint64_t>(facts.stx_ino), " ");
  std::string own, others, device;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    const std::size_t end = line.find(inode), begin = line.rfind(' ', end);
    if (end == std::string::npos) continue;
    device = line.substr(begin + 1, end - begin - 1);
    own += line + "\n";
    others += line.substr(0, begin) + " ff:ff" + line.substr(end) + "\n";
  }
  REQUIRE(!own.empty());
  CHECK(is_locked(folder.path(), put_file(folder / "own", own)));
  // Of a list of our own, since that of a chroot does not have the file system it lies in.
  const auto number = [](const std::string& hexadecimal) { return std::stoul(hexadecimal, nullptr, 16); };
  const fs::path listed = put_file(folder / "listed", text(facts.stx_mnt_id, " 1 ", number(device), ":",
                                                           number(device.substr(device.find(':') + 1)), " / / rw\n"));
  CHECK(is_locked(folder.path(), folder / "own", listed));
  CHECK(!is_locked(folder.path(), put_file(folder / "others", others), listed));
  CHECK(is_locked(folder.path(), folder / "others", put_file(folder / "none", "")));
}

}  // namespace
}  // namespace engram::harness::damaged_runs_test

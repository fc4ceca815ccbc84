/// The page of `engram watch` without its server: what it sends when, and what becomes of it when runs go or come.

#include "apps/studies/page/live_page.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "tests/apps/studies/page/page_contents.hpp"
#include "tests/harness/catch.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness::live_page_test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kStart = "{\"event\":\"start\",\"step\":0,\"steps\":9}\n";
std::string report(int step) { return text("{\"event\":\"train\",\"step\":", step, ",\"nll\":2,\"bpc\":2}\n"); }

/// Two runs, and a page of them.
class Watched {
 public:
  Watched() {
    for (const char* const name : {"a", "b"}) {
      fs::create_directories(place() / name);
      put_file(log(name), kStart + report(1));
    }
  }
  fs::path place() const { return folder_ / "sweep"; }
  fs::path log(const std::string& run) const { return place() / run / "metrics.jsonl"; }
  void append(const std::string& run, const std::string& lines) const {
    std::ofstream(log(run), std::ios::app) << lines;
  }
  LivePageMaker maker() const {
    return {.read =
                [place = place().string()] {
                  Page page;
                  for (const PageSource& source : find_sources({place}).runs) page.runs.push_back(open_run(source));
                  return page;
                },
            .study = {}};
  }
  LivePage page(LivePageMaker maker) const { return {{place().string()}, std::move(maker)}; }

 private:
  TemporaryFolder folder_;
};

json changes(LivePage& page, const std::string& since) {
  const std::string found = page.changes(since);
  return found.empty() ? json() : json::parse(found);
}

TEST_CASE("a live page sends runs that have changed, and all of them to who has a version of another program") {
  const Watched runs;
  LivePage page = runs.page(runs.maker());
  const json begun = data_of(page.html());
  CHECK(begun.at("runs").size() == 2);
  // What was loaded is not sent again.
  const std::string version = begun.at("version");
  CHECK(changes(page, version).is_null());
  runs.append("b", report(2));
  const json second = changes(page, version);
  CHECK(second.at("runs").at(0).is_null());
  CHECK(second.at("runs").at(1).at("step") == 2);
  runs.append("a", report(5));
  const json third = changes(page, second.at("version"));
  CHECK(third.at("runs").at(0).at("step") == 5);
  CHECK(third.at("runs").at(1).is_null());
  // Who missed one gets both.
  const json both = changes(page, version);
  CHECK(both.at("runs").at(0).at("step") == 5);
  CHECK(both.at("runs").at(1).at("step") == 2);
  CHECK(both.at("studied") == begun.at("studied"));
  // The same runs of a program that was started again: the browser sees that its page is an old one.
  LivePage again = runs.page(runs.maker());
  const json other = changes(again, version);
  REQUIRE(!other.is_null());
  CHECK(other.at("studied") != begun.at("studied"));
  CHECK(other.at("runs").at(1).at("step") == 2);
  for (const char* const strange : {"", "1", "-1", "x", "99999999999999999999", "1 "})
    CHECK(changes(again, strange).at("runs").at(0).at("step") == 5);
}

TEST_CASE("runs that are gone stay on a live page, which says so, until they are back") {
  const Watched runs;
  LivePage page = runs.page(runs.maker());
  const std::string version = data_of(page.html()).at("version");
  fs::rename(runs.place(), runs.place().string() + "-away");
  const json gone = changes(page, version);
  REQUIRE(!gone.is_null());
  CHECK_THAT(gone.at("head").get<std::string>(), ContainsSubstring("The runs are gone"));
  CHECK(gone.at("runs").size() == 2);
  CHECK(data_of(page.html()).at("runs").at(0).at("step") == 1);
  CHECK(changes(page, gone.at("version")).is_null());
  fs::rename(runs.place().string() + "-away", runs.place());
  runs.append("a", report(3));
  const json back = changes(page, gone.at("version"));
  CHECK_THAT(back.at("head").get<std::string>(), !ContainsSubstring("gone"));
  CHECK(back.at("runs").at(0).at("step") == 3);
}

TEST_CASE("a page that cannot be made anew says why, and stays as it was") {
  const Watched runs;
  LivePageMaker maker = runs.maker();
  bool is_broken = false;
  LivePage page = runs.page({.read =
                                 [&is_broken, read = maker.read] {
                                   if (is_broken) throw FileError("report: --bench is gone");
                                   return read();
                                 },
                             .study = {}});
  is_broken = true;
  fs::create_directories(runs.place() / "c");
  put_file(runs.log("c"), kStart);
  const json said = changes(page, "");
  CHECK(said.at("runs").size() == 2);
  CHECK_THAT(said.at("head").get<std::string>(), ContainsSubstring("--bench is gone"));
  is_broken = false;
  const json made = changes(page, said.at("version"));
  CHECK(made.at("runs").size() == 3);
  CHECK_THAT(made.at("head").get<std::string>(), !ContainsSubstring("--bench is gone"));
}

TEST_CASE("the first checkpoint of a watched run is studied once, when it is there") {
  const Watched runs;
  LivePageMaker maker = runs.maker();
  int studied = 0;
  maker.study = [&studied](PageRun& run) {
    ++studied;
    run.study = CheckpointStudy{};
    run.study->samples.push_back({.prompt = "The", .likely = "end", .sampled = "ant"});
  };
  LivePage page = runs.page(maker);
  const json before = data_of(page.html());
  CHECK(studied == 0);
  fs::create_directories(runs.place() / "b" / "checkpoint");
  put_file(runs.place() / "b" / "checkpoint" / "model.safetensors", "");
  const json after = changes(page, before.at("version"));
  CHECK(studied == 1);
  CHECK(after.at("studied") != before.at("studied"));
  CHECK_THAT(after.at("samples").get<std::string>(), ContainsSubstring("ant"));
  CHECK(changes(page, after.at("version")).is_null());
  CHECK(studied == 1);
}

}  // namespace
}  // namespace engram::harness::live_page_test

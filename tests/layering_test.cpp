/// The include rule of docs/architecture.md, and the rules about files, read from the sources themselves.

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/harness/catch.hpp"
#include "tests/harness/source_tree.hpp"

namespace engram::layering_test {
namespace {

namespace fs = std::filesystem;
using namespace source_tree;

/// Which folders a file of a folder may include from.
const std::map<std::string, std::set<std::string>> allowed{
    {"core", {"core"}},
    {"cpu", {"cpu", "core"}},
    {"cuda", {"cuda", "core"}},
    {"autograd", {"autograd", "core"}},
    {"nn", {"nn", "autograd", "core"}},
    {"apps", {"apps", "nn", "autograd", "core"}},
    {"tests", {"tests", "apps", "nn", "autograd", "core", "cpu", "cuda"}},
};
/// Libraries whose headers appear in one folder only.
const std::vector<std::pair<std::regex, std::string>> confined{
    {std::regex("^(Eigen/|unsupported/Eigen/|dnnl|oneapi/)"), "cpu"},
    {std::regex("^mpi\\.h$"), "cpu"},
    {std::regex("^(cuda|cublas|curand|cub/|nccl)"), "cuda"},
};
constexpr std::size_t kMostLines = 400;

/// Which rooms of apps a file of a room may include from, beside its own; "" is apps itself.
const std::map<std::string, std::set<std::string>> allowed_rooms{
    {"data", {}},
    {"report", {}},
    {"tour", {"tape", "report", "terminal"}},
    {"tape", {"report"}},
    {"examples", {}},
    {"terminal", {"data"}},
    {"run", {"terminal", "data"}},
    {"library", {"run", "data"}},
    {"studies", {"run", "tape", "report", "terminal", "data"}},
    {"command_line", {"run", "terminal"}},
    {"commands", {"command_line", "studies", "run", "tape", "report", "terminal", "data"}},
    {"", {"commands", "command_line", "run", "terminal", "tour"}},
};
/// The floors inside a room: a file includes from its own folder and from those on lower floors; "" is the room itself.
const std::map<std::string, std::map<std::string, int>> floors{
    {"apps/data", {{"files", 0}, {"text", 1}, {"vocabulary", 2}, {"", 3}, {"blocks", 4}, {"prepare", 4}}},
    {"apps/run",
     {{"folder", 0},
      {"config", 0},
      {"cost", 0},
      {"model", 1},
      {"evaluation", 2},
      {"generation", 3},
      {"weights", 3},
      {"transfer", 3},
      {"training", 4}}},
    {"apps/studies",
     {{"attention", 0},
      {"bench", 0},
      {"cbt", 0},
      {"context", 0},
      {"cost", 0},
      {"papers", 0},
      {"product_keys", 0},
      {"spans", 0},
      {"sweeps", 0},
      {"tape", 0},
      {"tensorboard", 0},
      {"figures", 1},
      {"comparisons", 2},
      {"page", 2}}},
    {"core", {{"", 0}, {"rules", 1}, {"files", 1}, {"kernels", 2}}},
    {"cpu", {{"", 0}, {"attention", 1}, {"large_softmax", 1}, {"ranks", 1}, {"recurrence", 1}}},
    {"nn", {{"", 0}, {"optim", 1}, {"past", 1}, {"layers", 2}, {"models", 3}}},
};
/// Files, a header and its source being one, that may include each other: each is a friend of the other.
const std::set<std::set<std::string>> honest_pairs{{"autograd/parameter", "autograd/parameter_store"},
                                                   {"autograd/backward", "autograd/tape"}};

/// What stands between "house/" and the next '/': the room of a file in a house, "" for a file of the house itself.
std::string room_in(const std::string& house, const std::string& path) {
  const std::string inside = path.substr(house.size() + 1);
  const std::size_t end = inside.find('/');
  return end == std::string::npos ? "" : inside.substr(0, end);
}

/// What an include of `target` does against the order of rooms and floors; empty: nothing.
std::string fault_of_rooms(const std::string& path, const std::string& target) {
  if (path.starts_with("apps/") && target.starts_with("apps/")) {
    const std::string from = room_in("apps", path), to = room_in("apps", target);
    if (!allowed_rooms.contains(from)) return "apps/" + from + " is no room: say what it may include";
    if (from != to && !allowed_rooms.at(from).contains(to)) return "the room " + from + " must not include " + target;
  }
  for (const auto& [house, floor_of] : floors) {
    if (!path.starts_with(house + "/") || !target.starts_with(house + "/")) continue;
    const std::string from = room_in(house, path), to = room_in(house, target);
    for (const std::string& room : {from, to})
      if (!floor_of.contains(room)) return house + "/" + room + " has no floor: say which it is";
    if (from != to && floor_of.at(from) <= floor_of.at(to))
      return house + "/" + from + " is not above " + target + ", and must not include it";
  }
  return {};
}

/// One line per fault of a file; `path` is relative to the root, with '/' between its parts.
Lines faults_of(const std::string& path, const Lines& lines) {
  static const std::regex include("^\\s*#\\s*include\\s*[<\"]([^>\"]+)[>\"]");
  const std::string folder = path.substr(0, path.find('/'));
  Lines faults;
  const auto fault = [&](std::size_t line, const std::string& what) {
    faults.push_back(path + ":" + std::to_string(line + 1) + ": " + what);
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    // Tests may name what they forbid; kernels may not be started past launch().
    if (folder != "tests" && lines[i].find("<<"
                                           "<") != std::string::npos)
      fault(i, "start kernels through launch()");
    if (folder == "cuda" && path != "cuda/shared.cuh" && lines[i].find("extern __shared__") != std::string::npos &&
        lines[i].find("//") == std::string::npos)
      fault(i, "take dynamic shared memory from dynamic_shared()");
    std::smatch match;
    if (!std::regex_search(lines[i], match, include)) continue;
    const std::string target = match[1];
    const std::string target_folder = target.substr(0, target.find('/'));
    if (const std::string upwards = fault_of_rooms(path, target); !upwards.empty()) fault(i, upwards);
    if (allowed.contains(target_folder) && target.find('/') != std::string::npos) {
      if (!allowed.at(folder).contains(target_folder))
        fault(i, folder + " must not include " + target);
      else if (path.starts_with("cuda/") && !path.starts_with("cuda/simulated/") && path != "cuda/launch.hpp" &&
               target.starts_with("cuda/simulated/"))
        fault(i, "only cuda/launch.hpp knows the simulated device, not " + path);
      else if (path.starts_with("cuda/") && !path.starts_with("cuda/card/") && path != "cuda/launch.hpp" &&
               target.starts_with("cuda/card/"))
        fault(i, "only cuda/launch.hpp knows the card, not " + path);
    } else if (lines[i].find('"') != std::string::npos) {
      fault(i, "include paths start at the root, got " + target);
    }
    for (const auto& [library, home] : confined)
      if (std::regex_search(target, library) && folder != home && folder != "tests")
        fault(i, target + " belongs into " + home + "/ only");
  }
  if ((path.ends_with(".hpp") || path.ends_with(".cuh")) && (lines.empty() || lines[0] != "#pragma once"))
    fault(0, "must begin with #pragma once");
  if (lines.size() > kMostLines) fault(kMostLines, "a file has at most " + std::to_string(kMostLines) + " lines");
  return faults;
}

/// Groups of files that include each other, directly or through others (the strongly connected components of more than
/// one file, by Tarjan's algorithm).
class Circles {
 public:
  explicit Circles(const Includes& includes) : includes_(includes) {
    for (const auto& [file, unused] : includes)
      if (!number_.contains(file)) visit(file);
  }
  const std::vector<std::set<std::string>>& found() const { return found_; }

 private:
  void visit(const std::string& file) {
    const std::size_t number = number_.size();
    number_[file] = lowest_[file] = number;
    path_.push_back(file);
    if (const auto next = includes_.find(file); next != includes_.end())
      for (const std::string& other : next->second) {
        if (!number_.contains(other)) visit(other);
        if (std::ranges::find(path_, other) != path_.end()) lowest_[file] = std::min(lowest_[file], lowest_[other]);
      }
    if (lowest_[file] != number) return;
    std::set<std::string> group;
    std::string last;
    do {
      last = path_.back();
      path_.pop_back();
      group.insert(last);
    } while (last != file);
    if (group.size() > 1) found_.push_back(group);
  }

  const Includes& includes_;
  std::map<std::string, std::size_t> number_, lowest_;
  std::vector<std::string> path_;
  std::vector<std::set<std::string>> found_;
};

/// Files of autograd/functions that nobody finds: autograd/functions.hpp does not include them, and no other file of
/// the folder does, as it would if they were parts that several functions share.
std::set<std::string> unlisted_functions(const Includes& includes) {
  const std::string list = "autograd/functions", folder = list + "/";
  std::set<std::string> unlisted, reached;
  for (const auto& [file, targets] : includes) {
    if (file.starts_with(folder)) unlisted.insert(file);
    if (file == list || file.starts_with(folder)) reached.insert(targets.begin(), targets.end());
  }
  for (const std::string& file : reached) unlisted.erase(file);
  return unlisted;
}

TEST_CASE("layering: every file keeps the include rule and the limit of lines", "[layering]") {
  const std::vector<SourceFile> sources = all_sources(ENGRAM_SOURCE_DIR);
  for (const SourceFile& source : sources)
    for (const std::string& fault : faults_of(source.path, source.lines)) FAIL_CHECK(fault);
  CHECK(sources.size() > 50);
}

TEST_CASE("layering: no files include each other in a circle", "[layering]") {
  const Includes includes = includes_of(all_sources(ENGRAM_SOURCE_DIR));
  CHECK(includes.size() > 500);
  std::set<std::set<std::string>> found;
  const Circles circles(includes);
  for (const std::set<std::string>& circle : circles.found()) found.insert(circle);
  CHECK(found == honest_pairs);
}

TEST_CASE("layering: autograd/functions.hpp includes every function", "[layering]") {
  const Includes includes = includes_of(all_sources(ENGRAM_SOURCE_DIR));
  CHECK(includes.at("autograd/functions").size() > 20);
  for (const std::string& file : unlisted_functions(includes))
    FAIL_CHECK("autograd/functions.hpp must include " << file << ".hpp");
}

TEST_CASE("layering: no file is named after nothing", "[layering]") {
  const fs::path root = ENGRAM_SOURCE_DIR;
  const std::set<std::string> empty_names{"util", "utils", "common", "misc", "helper", "helpers"};
  for (const auto& [folder, unused] : allowed) {
    if (!fs::exists(root / folder)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      INFO(entry.path());
      CHECK_FALSE(empty_names.contains(entry.path().stem().string()));
    }
  }
}

// Test files are compiled several at a time (docs/guide/building.md), where two fixtures of one name must not meet.
TEST_CASE("layering: a file of test cases has a namespace of its own", "[layering]") {
  const fs::path root = fs::path(ENGRAM_SOURCE_DIR) / "tests";
  std::size_t files = 0;
  for (const char* folder : {"core", "autograd", "nn", "harness", "ops", "ranks", "reference", "apps", "fuzz"})
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file()) continue;
      const std::string stem = entry.path().stem().string();
      const Lines lines = lines_of(entry.path());
      const bool has_cases = std::ranges::any_of(lines, [](const std::string& line) {
        return line.starts_with("TEST_CASE") || line.starts_with("const OpCases ");
      });
      if (entry.path().extension() != ".cpp" || !has_cases) continue;
      ++files;
      const std::string wanted = "::" + stem + (stem.ends_with("_test") ? "" : "_test") + " {";
      INFO(entry.path() << " must have a namespace that ends with " << wanted);
      CHECK(std::ranges::any_of(
          lines, [&](const std::string& line) { return line.starts_with("namespace ") && line.ends_with(wanted); }));
    }
  CHECK(files > 100);
}

TEST_CASE("layering: broken rules are found", "[layering]") {
  const auto count = [](const std::string& path, const Lines& lines) { return faults_of(path, lines).size(); };
  CHECK(count("core/a.hpp", {"#pragma once", "#include \"core/b.hpp\"", "#include <vector>"}) == 0);
  CHECK(count("core/a.cpp", {"#include \"autograd/tape.hpp\""}) == 1);
  CHECK(count("core/a.hpp", {"#pragma once", "#include \"core/kernels/b.hpp\""}) == 1);
  CHECK(count("core/a.cpp", {"#include \"core/kernels/b.hpp\""}) == 1);
  CHECK(count("core/rules/a.hpp", {"#pragma once", "#include \"core/files/b.hpp\""}) == 1);
  CHECK(count("cpu/a.cpp", {"#include \"cpu/attention/b.hpp\""}) == 1);
  CHECK(count("core/kernels/a.hpp", {"#pragma once", "#include \"core/kernels/b.hpp\"", "#include \"core/c.hpp\""}) ==
        0);
  CHECK(count("nn/a.cpp", {"#include \"cpu/b.hpp\""}) == 1);
  CHECK(count("cpu/a.cpp", {"#include \"autograd/b.hpp\"", "#include <Eigen/Core>", "#include <dnnl.hpp>"}) == 1);
  CHECK(count("nn/a.cpp", {"#include <Eigen/Core>"}) == 1);
  CHECK(count("cpu/a.cpp", {"#include <cuda_runtime.h>"}) == 1);
  CHECK(count("autograd/a.cpp", {"#include \"tests/b.hpp\""}) == 1);
  CHECK(count("apps/a.cpp", {"#include \"b.hpp\""}) == 1);
  CHECK(count("cuda/a.cu", {"kernel<<"
                            "<1, 2>>>();"}) == 1);
  CHECK(count("cuda/a.cu", {"extern __shared__ float values[];"}) == 1);
  CHECK(count("cuda/a.cu", {"#include \"cuda/simulated/engine.hpp\""}) == 1);
  CHECK(count("cuda/a.cu", {"#include \"cuda/card/backend.hpp\""}) == 1);
  CHECK(count("cuda/launch.hpp", {"#pragma once", "#include \"cuda/simulated/launch.hpp\""}) == 0);
  CHECK(count("cuda/a.cuh", {"#include <vector>"}) == 1);
  CHECK(count("nn/a.hpp", {"#include <vector>"}) == 1);
  CHECK(count("apps/run/model/a.cpp", {"#include \"apps/run/config/b.hpp\"", "#include \"apps/data/b.hpp\""}) == 0);
  CHECK(count("apps/run/model/a.cpp", {"#include \"apps/studies/spans/b.hpp\""}) == 1);
  CHECK(count("apps/run/model/a.cpp", {"#include \"apps/run/training/b.hpp\""}) == 1);
  CHECK(count("apps/run/weights/a.cpp", {"#include \"apps/run/training/b.hpp\""}) == 1);
  CHECK(count("apps/data/text/a.cpp", {"#include \"apps/data/b.hpp\""}) == 1);
  CHECK(count("apps/data/a.cpp", {"#include \"apps/data/text/b.hpp\""}) == 0);
  CHECK(count("apps/studies/spans/a.cpp", {"#include \"apps/studies/bench/b.hpp\""}) == 1);
  CHECK(count("apps/hall/a.cpp", {"#include \"apps/data/b.hpp\""}) == 1);
  CHECK(count("apps/run/hall/a.cpp", {"#include \"apps/run/config/b.hpp\""}) == 1);
  CHECK(count("nn/past/a.cpp", {"#include \"nn/layers/b.hpp\""}) == 1);
  CHECK(count("nn/layers/a.cpp", {"#include \"nn/past/b.hpp\"", "#include \"nn/b.hpp\""}) == 0);
  CHECK(count("nn/a.cpp", Lines(400, "")) == 0);
  CHECK(count("nn/a.cpp", Lines(401, "")) == 1);
  CHECK(faults_of("nn/a.cpp", {"", "#include \"cpu/b.hpp\""})[0] == "nn/a.cpp:2: nn must not include cpu/b.hpp");
}

TEST_CASE("layering: circles are found", "[layering]") {
  const auto circles = [](const Includes& includes) { return Circles(includes).found(); };
  CHECK(circles({{"a", {"b", "c"}}, {"b", {"c"}}, {"d", {"a"}}}).empty());
  CHECK(circles({{"a", {"b"}}, {"b", {"c"}}, {"c", {"b"}}}) == std::vector<std::set<std::string>>{{"b", "c"}});
  CHECK(circles({{"a", {"b"}}, {"b", {"c"}}, {"c", {"d"}}, {"d", {"a", "e"}}}) ==
        std::vector<std::set<std::string>>{{"a", "b", "c", "d"}});
  Includes includes;
  add_includes(includes, "core/a.cpp", {"#include \"core/a.hpp\"", "#include <b>", "#include \"core/c.hpp\""});
  CHECK(includes == Includes{{"core/a", {"core/c"}}});
}

TEST_CASE("layering: functions that are not listed are found", "[layering]") {
  const Includes includes{{"autograd/functions", {"autograd/functions/a"}},
                          {"autograd/functions/a", {"autograd/variable", "autograd/functions/part"}},
                          {"autograd/functions/b", {"autograd/variable"}},
                          {"autograd/functions/part", {"core/shape"}},
                          {"nn/layers/b", {"autograd/functions/b"}}};
  CHECK(unlisted_functions(includes) == std::set<std::string>{"autograd/functions/b"});
}

}  // namespace
}  // namespace engram::layering_test

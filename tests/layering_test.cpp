/// The include rule of docs/architecture.md, and the rules about files, read from the sources themselves.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/harness/catch.hpp"

namespace {

namespace fs = std::filesystem;
using Lines = std::vector<std::string>;

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
    {std::regex("^(cuda|cublas|curand|cub/|nccl)"), "cuda"},
};
constexpr std::size_t kMostLines = 400;

bool is_source(const std::string& path) {
  static const std::set<std::string> extensions{".cpp", ".hpp", ".cu", ".cuh"};
  return extensions.contains(fs::path(path).extension().string());
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
    if (allowed.contains(target_folder) && target.find('/') != std::string::npos) {
      if (!allowed.at(folder).contains(target_folder))
        fault(i, folder + " must not include " + target);
      else if (path.starts_with("core/") && path.ends_with(".hpp") && !path.starts_with("core/kernels/") &&
               target.starts_with("core/kernels/"))
        fault(i, "headers of core must not include " + target);
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

Lines lines_of(const fs::path& path) {
  std::ifstream in(path);
  REQUIRE(in.good());
  Lines lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST_CASE("layering: every file keeps the include rule and the limit of lines", "[layering]") {
  const fs::path root = ENGRAM_SOURCE_DIR;
  std::size_t files = 0;
  for (const auto& [folder, unused] : allowed) {
    if (!fs::exists(root / folder)) continue;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string path = fs::relative(entry.path(), root).generic_string();
      if (!entry.is_regular_file() || !is_source(path)) continue;
      ++files;
      for (const std::string& fault : faults_of(path, lines_of(entry.path()))) FAIL_CHECK(fault);
    }
  }
  CHECK(files > 50);
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

// Test files are compiled several at a time (docs/building.md), where two fixtures of one name must not meet.
TEST_CASE("layering: a file of test cases has a namespace of its own", "[layering]") {
  const fs::path root = fs::path(ENGRAM_SOURCE_DIR) / "tests";
  std::size_t files = 0;
  for (const char* folder : {"core", "autograd", "nn", "harness", "ops", "reference", "apps"})
    for (const fs::directory_entry& entry : fs::directory_iterator(root / folder)) {
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
  CHECK(count("core/a.cpp", {"#include \"core/kernels/b.hpp\""}) == 0);
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
  CHECK(count("nn/a.cpp", Lines(400, "")) == 0);
  CHECK(count("nn/a.cpp", Lines(401, "")) == 1);
  CHECK(faults_of("nn/a.cpp", {"", "#include \"cpu/b.hpp\""})[0] == "nn/a.cpp:2: nn must not include cpu/b.hpp");
}

}  // namespace

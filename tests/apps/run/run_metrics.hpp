#pragma once
/// Numbers of a run's metrics.jsonl, for tests.

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "core/files/json.hpp"
#include "tests/harness/temporary_folder.hpp"

namespace engram::harness {

/// Every number of a run's metrics that is called `name`.
inline std::vector<double> metrics(const std::filesystem::path& run, const char* name) {
  std::istringstream lines(get_file(run / "metrics.jsonl"));
  std::vector<double> found;
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line);
    if (object.contains(name)) found.push_back(object[name].get<double>());
  }
  return found;
}

}  // namespace engram::harness

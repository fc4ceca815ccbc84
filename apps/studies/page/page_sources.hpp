#pragma once
/// What a page is asked to show: folders of runs and of sweeps, and checkpoints.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace engram {

/// One run, or one checkpoint without a run.
struct PageSource {
  std::string name;                  ///< short, and of no other source
  std::filesystem::path folder;      ///< of the run; empty: there is but the checkpoint
  std::filesystem::path checkpoint;  ///< that was named; empty: the run's own
};

struct PageSources {
  std::vector<PageSource> runs;       ///< in the order of the arguments, of a sweep by name
  std::vector<std::string> problems;  ///< a line for each argument that shows nothing
};

/// A folder with a metrics.jsonl, a config.toml or a checkpoint is a run; one whose folders are runs is a sweep; a file
/// is a checkpoint. What is none of these is a problem.
PageSources find_sources(const std::vector<std::string>& arguments);

}  // namespace engram

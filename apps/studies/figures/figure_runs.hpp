#pragma once
/// Which runs a figure is of: folders of runs, and of sweeps, whose runs that differ in their seeds belong together.

#include <filesystem>
#include <string>
#include <vector>

#include "apps/studies/figures/run_settings.hpp"

namespace engram {

struct FigureRun {
  std::filesystem::path folder;
  std::string name;  ///< of its series: runs of one name are seeds of one line
};

/// The last part of each path, with as many of those before it as it takes for all to differ.
std::vector<std::string> short_names(const std::vector<std::filesystem::path>& paths);

/// The runs in the order of the arguments, of a sweep in that of its runs.csv. A run has its
/// short_names(), a run of a sweep the name of its variant. `names`, if there are any: one for each run, or one for
/// each name there is, in order. Throws UsageError for what is neither a run nor a sweep and for another number of
/// names, and as parse_csv() does.
std::vector<FigureRun> find_figure_runs(const std::vector<std::string>& arguments,
                                        const std::vector<std::string>& names = {},
                                        const std::vector<KeyValue>& where = {});

}  // namespace engram

#pragma once
/// In which keys the runs of a page differ.

#include <map>
#include <string>
#include <vector>

#include "apps/studies/page/page_run.hpp"

namespace engram {

/// The configuration that a run has, or its checkpoint; empty: none.
std::string toml_of(const PageRun& run);

struct ConfigTable {
  std::vector<std::string> keys;                           ///< that differ, in the order of the first file with them
  std::vector<std::map<std::string, std::string>> values;  ///< of every run
};

/// The keys that do not have one value in all runs with a configuration; one that a run lacks differs, too.
ConfigTable differing_keys(const std::vector<PageRun>& runs);

}  // namespace engram

#pragma once
/// The page of `engram report` and `engram watch`: one HTML file that opens anywhere and asks nothing of the network.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/studies/page/page_run.hpp"
#include "core/files/json.hpp"

namespace engram {

struct Page {
  std::vector<PageRun> runs;
  std::vector<std::string> problems;  ///< of arguments that are no runs
  nlohmann::json bench;               ///< what `engram bench --json` printed; null: none
  bool live = false;                  ///< `engram watch`: its script asks for what is new
  std::int64_t studied = 0;           ///< of a live page: another one when it is to be loaded anew
  std::string version;                ///< of a live page: another one when anything has changed
};

/// What every page begins with.
inline constexpr std::string_view kPageBeginning = "<!DOCTYPE html>\n<!-- engram report -->\n";

/// The whole page. Essentials are there without scripts: the runs, what the models write, memory, configurations, how
/// to repeat them, and a drawing of the losses.
std::string html_of(const Page& page);
/// What changes while runs are trained, as JSON: {"version", "studied", "runs": [log_json(), ...]}, null for a run that
/// is not `changed`, and the HTML of parts that need no script under their names.
std::string live_json_of(const Page& page, const std::vector<bool>& changed);

// The parts of the page, in files of their own. Everything of runs and files in them is escaped.

/// A run's colour and its name, as all parts show them.
std::string named_chip(const Page& page, std::size_t run);
/// What is best and what went wrong, the problems, and a row for each run.
std::string head_html(const Page& page, const std::vector<RunSummary>& runs);
/// Losses of all runs, for paper and where scripts are refused; empty without any.
std::string loss_svg(const Page& page, const std::vector<RunSummary>& runs);
/// Which curves of losses are not to be compared, and which are not to be seen; empty: all is well.
std::string loss_notes(const Page& page, const std::vector<RunSummary>& runs);
/// One line that names the runs without a checkpoint, and says why they are missing in a part; empty: none is.
std::string missing_html(const Page& page);
/// What was written while training and by the newest weights.
std::string samples_html(const Page& page);
/// Kernels of a bench.
std::string time_html(const Page& page);
std::string memory_html(const Page& page);
/// Keys that differ, then all of every run.
std::string config_html(const Page& page);
/// How every run was made, and by what.
std::string provenance_html(const Page& page);

}  // namespace engram

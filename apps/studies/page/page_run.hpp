#pragma once
/// A run as a page shows it: its log, its configuration, and what was found in its checkpoint.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/run/config/run_config.hpp"
#include "apps/studies/page/checkpoint_study.hpp"
#include "apps/studies/page/page_sources.hpp"
#include "apps/studies/page/run_log.hpp"
#include "core/names.hpp"

namespace engram {

enum class PageState : std::uint8_t {
  waiting,   ///< has no step yet, and nobody trains it
  training,  ///< a process of this machine has its folder
  done,
  interrupted,
  diverged,
  out_of_memory,
  stopped,    ///< its log says no end, and nobody trains it here
  checkpoint  ///< a checkpoint without a run
};
constexpr auto names_of(PageState) {
  return std::to_array<Named<PageState>>({{PageState::waiting, "not begun"},
                                          {PageState::training, "training"},
                                          {PageState::done, "done"},
                                          {PageState::interrupted, "interrupted"},
                                          {PageState::diverged, "diverged"},
                                          {PageState::out_of_memory, "out of memory"},
                                          {PageState::stopped, "stopped"},
                                          {PageState::checkpoint, "checkpoint"}});
}

struct PageRun {
  PageSource source;
  RunLog log;
  std::string toml;                       ///< of the configuration; empty: none could be read
  std::optional<RunConfig> config;        ///< none: there is none, or of another version
  std::optional<CheckpointStudy> study;   ///< none: there is no checkpoint
  std::optional<double> test, best_test;  ///< scores that a sweep measured
  std::vector<std::string> problems;      ///< beside those of the log and the study

  /// Of everything.
  std::vector<std::string> all_problems() const;
  /// What a guess costs, nats a token: ln V. None where the configuration is not known.
  std::optional<double> guess() const;
};

/// Reads all but the checkpoint. What cannot be read is a problem.
PageRun open_run(const PageSource& source);
/// Reads what was written since. Whether anything changed.
bool update(PageRun& run);
/// The checkpoint that is shown of a run: the newest, else the best; empty: none.
std::filesystem::path checkpoint_of(const PageSource& source);

/// The first rows of a page. Losses are nats a token.
struct RunSummary {
  PageState state = PageState::waiting;
  std::string reason;  ///< why it is not done, for people; may be empty
  std::string family, score;
  std::string data;  ///< hash; losses of other data are not to be compared
  std::int64_t parameters = 0, step = 0, planned = 0;
  std::optional<std::int64_t> tokens;  ///< read in training
  double seconds = 0;
  std::optional<double> tokens_per_second;  ///< over its last process
  /// Step and loss of validations; a run that diverged and never was better than a guess has no best.
  std::optional<std::pair<std::int64_t, double>> best, last;
  std::optional<double> test;  ///< score of the best checkpoint, else of the last step
};
RunSummary summary_of(const PageRun& run);
/// The run with the lowest validation loss of each data set that two runs or more were validated on; without such the
/// only run that was. Indices.
std::vector<std::size_t> best_runs(const std::vector<RunSummary>& runs);

}  // namespace engram

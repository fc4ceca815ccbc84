#pragma once
/// The reports of runs as event files, for TensorBoard and what else reads those.

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/report/event_file.hpp"

namespace engram {

/// What metrics.jsonl says, in the order of the steps; what a resumed run took back and repeated is there once. Tags:
/// loss/train, loss/valid (nats per token) and the same for bpc, bits, ppl and its kinds; rate, gradient_norm, clipped,
/// tokens_per_second/train and /valid, cache_shortfalls; span/mean, span/longest and span/layer_0 and so on, the mean
/// of a layer's heads in positions; memory/layer_5/usage, /top_usage and /kl, layers counted as configurations do; the
/// text `sample`. Numbers that are none (NaN) are left out. A line of an older log, without a time, gets that of the
/// next line that has one, else the time at which the file was last written: none can be later. A line that is no
/// report is left out. Throws FileError for a file that cannot be read.
struct RunEvents {
  std::vector<SummaryEvent> events;
  double begun = -1;    ///< when the run was: the time of its first line, else of its first event
  std::string problem;  ///< which lines are left out, for people; empty: none
};
RunEvents run_events(const std::filesystem::path& metrics_file);

/// What was written of one run.
struct ExportedRun {
  std::filesystem::path run, file;
  std::int64_t scalars = 0, samples = 0;
};
struct TensorboardExport {
  std::filesystem::path folder;
  std::vector<ExportedRun> runs;
  std::vector<std::string> problems;  ///< a line for each run of which not all could be read
};

/// Writes an event file for every run, into a folder for each: FOLDER/NAME/events.out.tfevents.engram. NAME is that of
/// the run's folder; where two have the same name, their paths below the folder that has them all. A file of that name
/// is replaced, or, if there is only more to be said than the last time, appended to. Throws UsageError for no run, one
/// that is named twice, a folder without metrics.jsonl and one that holds event files of other programs, whose points
/// would be drawn with the run's; FileError where no run can be read or written: otherwise that is a problem of one
/// run, and the others are written. Nothing is written before all runs have been looked at.
TensorboardExport write_tensorboard(const std::vector<std::filesystem::path>& runs,
                                    const std::filesystem::path& folder);

std::string table_of(const TensorboardExport& written);
nlohmann::json json_of(const TensorboardExport& written);

}  // namespace engram

#pragma once
/// What the commands that study context take alike: trained runs, the tokens they read, and where they are read.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command_line/command.hpp"
#include "apps/commands/report_output.hpp"
#include "apps/run/model/runtime.hpp"
#include "apps/studies/context/studied_run.hpp"
#include "core/dtype.hpp"

namespace engram {

struct StudyArguments {
  std::vector<std::string> runs;
  std::string data, split = "valid";
  ReportOutput output;

  /// Adds the runs, described as `runs_help`, and the options that say what is read.
  void add_reading(Command& command, const std::string& runs_help);
  /// Adds --csv, described as `csv_help`, and the options that say where it is read.
  void add_running(Command& command, const std::string& csv_help);
  /// --clamp-len, if it was given.
  std::optional<std::int64_t> clamp() const;

 private:
  friend struct Study;
  const Command* command_ = nullptr;
  std::int64_t tokens_ = 0, clamp_ = 0;
  std::string device_ = "cpu", dtype_ = "f32";
  int threads_ = 0;
  bool best_ = false;
};

/// What the arguments name, opened.
struct Study {
  /// Throws UsageError for a dtype other than f32 and f64, and as open_studied_runs() and data::DataSet do.
  Study(const StudyArguments& arguments, std::string_view command);

  DType dtype;
  Runtime runtime;
  data::DataSet data;
  data::TokenView tokens;  ///< of the split, the first ones that were asked for
  std::vector<StudiedRun> runs;
};

}  // namespace engram

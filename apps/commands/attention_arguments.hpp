#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command_line/command.hpp"
#include "apps/commands/model_arguments.hpp"
#include "apps/commands/reading_arguments.hpp"
#include "apps/commands/report_output.hpp"
#include "apps/studies/attention/attention_study.hpp"
#include "apps/studies/attention/window_reading.hpp"

namespace engram {

/// What `engram attention` takes: some of it is for some families of models alone.
struct AttentionArguments {
  ModelArguments model;
  ReportOutput output;
  ReadingArguments read;
  StudiedHead studied{.rows = 64};
  std::int64_t slots = 10;
  std::string term, mean_csv, mean_svg;

  /// Adds all options to the command, which must outlive this.
  void add_to(Command& command);
  /// Throws UsageError for files that results must not go to.
  void check_files() const;
  /// Sets what evaluation may set otherwise than training did. Throws UsageError for options and models that do not fit
  /// each other, and for neither and both of a text and --data.
  void prepare(ModelOptions& options) const;
  /// What of --data a study of windows reads.
  WindowReading reading() const;

 private:
  /// Throws UsageError naming the first option that is not for models of the family.
  void refuse_given(ModelFamily family) const;

  const Command* command_ = nullptr;
  std::int64_t memory_ = 0, clamp_ = 0, article_ = 0;
  bool same_length_ = false;
};

}  // namespace engram

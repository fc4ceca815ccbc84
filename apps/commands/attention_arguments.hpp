#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "apps/command_line/command.hpp"
#include "apps/commands/model_arguments.hpp"
#include "apps/commands/report_output.hpp"
#include "apps/studies/attention/attention_study.hpp"
#include "apps/studies/attention/window_reading.hpp"

namespace engram {

/// What `engram attention` takes for the families whose attention it shows: some of it is for some of them alone.
struct AttentionArguments {
  ModelArguments model;
  ReportOutput output;
  StudiedHead studied{.rows = 64};
  std::int64_t slots = 10;
  std::string data, term, mean_csv, mean_svg;

  /// Adds all options to the command, which must outlive this.
  void add_to(Command& command);
  /// Throws UsageError for files that results must not go to.
  void check_files() const;
  /// Makes the model one for studies. Throws UsageError for options and models that do not fit each other.
  void prepare(ModelOptions& options) const;
  /// The text that is read; none where --data is. Throws UsageError for neither and both, and for words that the model
  /// does not know.
  std::vector<std::int32_t> text_tokens(const TrainedModel& trained) const;
  /// What of --data is read.
  WindowReading reading() const;

 private:
  /// Throws UsageError naming the first option that is not for models of the family.
  void refuse_given(ModelFamily family) const;

  const Command* command_ = nullptr;
  std::string text_, file_, oov_ = "error", split_ = "valid";
  std::int64_t tokens_ = 0, memory_ = 0, clamp_ = 0, article_ = 0;
  bool same_length_ = false;
};

}  // namespace engram

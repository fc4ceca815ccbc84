#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "apps/command_line/command.hpp"
#include "apps/commands/model_arguments.hpp"
#include "apps/terminal/work_progress.hpp"

namespace engram {

/// What `engram attention` has for the recurrent family alone.
struct AttentionWindowsArguments {
  std::string mean_csv, mean_svg;
  std::int64_t article = 0;

  /// Adds them to the command, which must outlive this. `data`: the option that articles come from.
  void add_to(Command& command, Option* data);
  bool article_given() const { return command_->count("--article") > 0; }
  /// Throws UsageError naming an option of this family that was given, for a model of the family `other`.
  void refuse_given(std::string_view other) const;

 private:
  const Command* command_ = nullptr;
};

/// What is read, of the options that families share, and where the results go; empty: nowhere.
struct AttentionWindowsReading {
  std::string data, split;  ///< empty `data`: the text
  std::int64_t tokens = 0;  ///< of the split, the first ones; 0: all
  std::int64_t rows = 0;    ///< positions in `csv` and `svg`: the first ones of the article or text
  std::string csv, svg;
  bool json = false;
};

/// Reads a split, or without one `text_tokens`, with the model, which must be of the family, and tells where in its
/// window it looks. Throws UsageError for an article that is not there.
void show_attention_windows(OpenedModel& opened, const AttentionWindowsArguments& arguments,
                            std::span<const std::int32_t> text_tokens, const AttentionWindowsReading& reading,
                            WorkProgress& progress);

}  // namespace engram

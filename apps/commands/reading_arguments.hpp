#pragma once
/// What a model is given to read: a text, or a split of a data folder.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "apps/command_line/command.hpp"
#include "apps/commands/model_arguments.hpp"

namespace engram {

struct ReadingArguments {
  std::string data, split = "valid";
  std::int64_t most = 0;  ///< tokens of the split, the first ones; 0: all

  /// Adds --text, --file, --oov, --data, --split and --tokens to the command, which must outlive this.
  void add_to(Command& command);
  /// Throws UsageError unless there is either a text or --data.
  void check() const;
  /// What is read, of the text or of --data. Throws UsageError for words that the model does not know, and as
  /// OpenedModel::open_data() does.
  std::vector<std::int32_t> tokens(const OpenedModel& opened) const;

 private:
  const Command* command_ = nullptr;
  std::string text_, file_, oov_ = "error";
};

}  // namespace engram

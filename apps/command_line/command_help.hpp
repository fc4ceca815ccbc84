#pragma once
/// The help of a command, or of all: CLI11's own is as wide as its longest sentence.

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace engram {

class CommandHelp : public CLI::FormatterBase {
 public:
  /// No line is wider than this, nor than 120; at least 40.
  void set_columns(std::size_t columns);
  /// What is required and how, what may be given with its default in brackets, and of the program its commands in their
  /// groups. `name` is the command with the program's before it.
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override;

 private:
  std::size_t columns_ = 80;
};

/// "--out FOLDER", "RUN": an option with the name of its value, as a usage line and errors call it.
std::string option_with_value(const CLI::Option& option);

/// What a usage line is made of, behind the names of program and command: "COMMAND", "RUN", "--out FOLDER",
/// "[OPTIONS]".
std::vector<std::string> usage_parts(const CLI::App& app);

/// What the help says of an option: its meaning, what belongs to it, and its default. `all` are the options of its
/// command.
std::string option_meaning(const CLI::Option& option, const std::vector<const CLI::Option*>& all);

/// "FILE", "FILE..." or, where the value may be left out, "[WORD]"; nothing of a flag.
std::string option_value(const CLI::Option& option);

}  // namespace engram

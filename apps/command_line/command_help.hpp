#pragma once
/// The help of a command, or of all: CLI11's own is as wide as its longest sentence.

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

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

}  // namespace engram

#pragma once
/// A command line with subcommands and their options, in front of CLI11: its header takes seconds to compile, here once
/// instead of in every command. Names and meanings are CLI11's.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/command_line/command_description.hpp"
#include "apps/command_line/number_bounds.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace engram {

class CommandHelp;

/// An option of a command, which owns it. All return the option itself.
class Option {
 public:
  /// `bounds`: those that the check of its numbers, if it takes any, goes by.
  explicit Option(CLI::Option* option, std::shared_ptr<NumberBounds> bounds = nullptr);
  Option* required();
  /// Shows the variable's present value in the help.
  Option* capture_default_str();
  /// Of options that take numbers.
  Option* positive();
  Option* non_negative();
  Option* within(double least, double most);
  Option* one_of(const std::vector<std::string>& values);
  Option* needs(const Option* other);
  Option* excludes(const Option* other);
  /// Values may be given as one, with this between them.
  Option* delimiter(char between);
  /// Whether a list takes all values that follow, or one for each time that the option is given.
  Option* allow_extra_args(bool all);
  Option* expected(int least, int most);
  /// What the help calls the value, in capitals; else value_name() says it.
  Option* value_name(const std::string& name);
  /// Words that a shell offers for the value, which others may be as well; one_of() has its own.
  Option* suggest(const std::vector<std::string>& words);
  /// Not in the help: an old spelling.
  Option* hidden();
  /// An argument that follows the option is its value only if this says so: what comes after may be a file. A list
  /// takes all that follow and are values. Without one the value is `otherwise`; if that is empty, it must have one.
  Option* value_if(std::function<bool(const std::string&)> is_value, const std::string& otherwise = "");
  /// value_if() for a value that is one of these words or `otherwise`, if nothing follows.
  Option* one_of_or(const std::vector<std::string>& values, const std::string& otherwise);

 private:
  friend class Command;
  bool has_name(const std::string& name) const;
  bool is_list() const;
  OptionDescription describe() const;
  /// "--way must be fast or slow", of one_of_or().
  std::string words_rule() const;

  CLI::Option* option_;
  std::shared_ptr<NumberBounds> bounds_;
  std::function<bool(const std::string&)> is_value_;  // empty: all are
  std::string otherwise_;
  std::vector<std::string> words_;    // of one_of_or()
  std::vector<std::string> offered_;  // to who types the value
};

class Command {
 public:
  /// Of a parser that outlives this.
  explicit Command(CLI::App& parser);
  ~Command();
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  Command* add_subcommand(const std::string& name, const std::string& help);
  /// The title that it stands under in the list of subcommands. Returns the command itself.
  Command* group(const std::string& title);
  /// The variable gets what is given; it must live as long as the parser. One with a name that does not begin with '-'
  /// has no name on the command line. Integers are decimal, and refused where the variable cannot hold them; other
  /// numbers are finite.
  Option* add_option(const std::string& names, std::string& value, const std::string& help);
  Option* add_option(const std::string& names, double& value, const std::string& help);
  Option* add_option(const std::string& names, int& value, const std::string& help);
  Option* add_option(const std::string& names, std::int64_t& value, const std::string& help);
  Option* add_option(const std::string& names, std::uint64_t& value, const std::string& help);
  Option* add_option(const std::string& names, std::vector<std::string>& value, const std::string& help);
  Option* add_option(const std::string& names, std::vector<std::int64_t>& value, const std::string& help);
  Option* add_flag(const std::string& names, bool& value, const std::string& help);
  /// --set, which takes what follows it as long as that is a key with a value: the next may be a file.
  Option* add_settings(std::vector<std::string>& value, const std::string& help);
  /// add_settings() of keys of a configuration: who gives one of them as an option is told.
  Option* add_key_settings(std::vector<std::string>& value, const std::string& help);
  /// One that was added.
  Option* get_option(const std::string& name);
  /// How often an option was given.
  std::size_t count(const std::string& name) const;
  /// What runs when the command was given with valid options.
  void callback(std::function<void()> run);
  /// From now on it is parsed, and does nothing.
  void idle() { is_idle_ = true; }
  /// The end of the help.
  void footer(const std::string& text);
  std::string name() const;
  /// nullptr when there is none of this name.
  const Command* subcommand(const std::string& name) const;
  Command* subcommand(const std::string& name);
  /// The arguments with the values of options that have value_if() written so that they are not mistaken.
  std::vector<std::string> with_values(const std::vector<std::string>& arguments) const;
  /// Why an argument is not the value of the option before it: "--way must be fast or slow, got 'high'". Empty where
  /// none before it has one_of_or().
  std::string refused_word(const std::vector<std::string>& arguments, const std::string& argument) const;
  /// A line with the words of the one_of_or() that another argument follows; empty: none does.
  std::string values_hint(const std::vector<std::string>& arguments) const;
  /// What there is to say of it, and of its subcommands.
  CommandDescription describe() const;
  /// Whether it has add_key_settings().
  bool takes_keys() const { return takes_keys_; }

 private:
  template <class T>
  Option* add(const std::string& names, T& value, const std::string& help);
  Option* keep(CLI::Option* option, std::shared_ptr<NumberBounds> bounds = nullptr);
  /// The one of this name that has value_if(); nullptr: none.
  const Option* with_condition(const std::string& name) const;

  CLI::App* parser_;
  bool takes_keys_ = false, is_idle_ = false;
  std::vector<std::unique_ptr<Option>> options_;
  std::vector<std::unique_ptr<Command>> subcommands_;
};

/// Whether an argument is a key with a value, such as model.width=16, and no path: for value_if().
bool is_setting(const std::string& argument);

/// A program's whole command line: one subcommand and what belongs to it.
class CommandLine {
 public:
  /// With a version there is --version, which prints it behind the name.
  CommandLine(const std::string& name, const std::string& description, const std::string& version = "");
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  /// What subcommands are added to.
  Command& commands() { return commands_; }
  /// The names of all subcommands, in the order in which they were added.
  std::vector<std::string> names() const;
  /// What --help prints in so many columns: of the program, or of the subcommand of that name.
  std::string help(std::size_t columns, const std::string& command = "") const;
  /// Runs the callback of the command that the arguments name (the program's own name is not among them), or prints the
  /// help they ask for. Throws UsageError when they are wrong, with the way to the help, and Error when the help could
  /// not be written.
  void run(const std::vector<std::string>& arguments);

 private:
  std::unique_ptr<CLI::App> parser_;
  std::shared_ptr<CommandHelp> help_;
  Command commands_;
};

}  // namespace engram

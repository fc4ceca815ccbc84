#include "apps/commands/command.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <utility>

#include "core/error.hpp"

namespace engram {
namespace {

/// CLI11's own checks of these names print the largest double in full.
CLI::Validator number(const char* name, const char* rule, bool (*holds)(double)) {
  const auto check = [rule, holds](const std::string& given) {
    double value = 0;
    if (CLI::detail::lexical_cast(given, value) && holds(value)) return std::string();
    return "must be a number " + std::string(rule) + ", got '" + given + "'";
  };
  return CLI::Validator(check, name);
}

}  // namespace

Option* Option::required() {
  option_->required();
  return this;
}
Option* Option::capture_default_str() {
  option_->capture_default_str();
  return this;
}
Option* Option::positive() {
  option_->check(number("POSITIVE", "above 0", [](double value) { return value > 0; }));
  return this;
}
Option* Option::non_negative() {
  option_->check(number("NONNEGATIVE", "of at least 0", [](double value) { return value >= 0; }));
  return this;
}
Option* Option::within(double least, double most) {
  option_->check(CLI::Range(least, most));
  return this;
}
Option* Option::one_of(const std::vector<std::string>& values) {
  option_->check(CLI::IsMember(values));
  return this;
}
Option* Option::needs(const Option* other) {
  option_->needs(other->option_);
  return this;
}
Option* Option::excludes(const Option* other) {
  option_->excludes(other->option_);
  return this;
}
Option* Option::delimiter(char between) {
  option_->delimiter(between);
  return this;
}
Option* Option::allow_extra_args(bool all) {
  option_->allow_extra_args(all);
  return this;
}
Option* Option::expected(int least, int most) {
  option_->expected(least, most);
  return this;
}

Command::Command(CLI::App& parser) : parser_(&parser) {}
Command::~Command() = default;

Command* Command::add_subcommand(const std::string& name, const std::string& help) {
  return subcommands_.emplace_back(std::make_unique<Command>(*parser_->add_subcommand(name, help))).get();
}

Option* Command::keep(CLI::Option* option) { return options_.emplace_back(std::make_unique<Option>(option)).get(); }

template <class T>
Option* Command::add(const std::string& names, T& value, const std::string& help) {
  return keep(parser_->add_option(names, value, help));
}
Option* Command::add_option(const std::string& names, std::string& value, const std::string& help) {
  return add(names, value, help);
}
Option* Command::add_option(const std::string& names, double& value, const std::string& help) {
  return add(names, value, help);
}
Option* Command::add_option(const std::string& names, int& value, const std::string& help) {
  return add(names, value, help);
}
Option* Command::add_option(const std::string& names, std::int64_t& value, const std::string& help) {
  return add(names, value, help);
}
Option* Command::add_option(const std::string& names, std::uint64_t& value, const std::string& help) {
  return add(names, value, help);
}
Option* Command::add_option(const std::string& names, std::vector<std::string>& value, const std::string& help) {
  return add(names, value, help);
}
Option* Command::add_option(const std::string& names, std::vector<std::int64_t>& value, const std::string& help) {
  return add(names, value, help);
}
Option* Command::add_flag(const std::string& names, bool& value, const std::string& help) {
  return keep(parser_->add_flag(names, value, help));
}
Option* Command::get_option(const std::string& name) { return keep(parser_->get_option(name)); }
std::size_t Command::count(const std::string& name) const { return parser_->count(name); }
void Command::callback(std::function<void()> run) { parser_->callback(std::move(run)); }
void Command::footer(const std::string& text) { parser_->footer(text); }

CommandLine::CommandLine(const std::string& name, const std::string& description)
    : parser_(std::make_unique<CLI::App>(description, name)), commands_(*parser_) {
  parser_->require_subcommand(1);
}
CommandLine::~CommandLine() = default;

std::vector<std::string> CommandLine::names() const {
  std::vector<std::string> names;
  for (const CLI::App* command : parser_->get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

void CommandLine::run(const std::vector<std::string>& arguments) {
  try {
    // CLI11 takes them from the back.
    parser_->parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::Success& help) {
    if (parser_->exit(help) != 0 || std::fflush(stdout) != 0) throw Error("the help could not be written");
  } catch (const CLI::ParseError& error) {
    const auto parsed = parser_->get_subcommands();
    throw UsageError(text(error.what(), "\n  ", parser_->get_name(), " ",
                          parsed.empty() ? "" : parsed.front()->get_name() + " ", "--help lists the options"));
  }
}

}  // namespace engram

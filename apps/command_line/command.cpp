#include "apps/command_line/command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <type_traits>
#include <utility>

#include "apps/command_line/command_faults.hpp"
#include "apps/command_line/command_help.hpp"
#include "apps/command_line/value_names.hpp"
#include "apps/terminal/wrapped_text.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

/// What a variable's elements are, and whether it has several.
template <class T>
struct Held {
  using Element = T;
  static constexpr bool kSeveral = false;
};
template <class T>
struct Held<std::vector<T>> {
  using Element = T;
  static constexpr bool kSeveral = true;
};

template <class T>
constexpr ValueKind kind_of() {
  if constexpr (std::is_integral_v<typename Held<T>::Element>)
    return Held<T>::kSeveral ? ValueKind::integers : ValueKind::integer;
  else if constexpr (std::is_floating_point_v<T>)
    return ValueKind::number;
  else
    return ValueKind::text;
}

CommandHints hints_of(const Command* command) {
  if (command == nullptr) return {};
  return {.takes_keys = command->takes_keys(),
          .refused_word = [command](const auto& given,
                                    const auto& argument) { return command->refused_word(given, argument); },
          .values_hint = [command](const auto& given) { return command->values_hint(given); }};
}

}  // namespace

Command::Command(CLI::App& parser) : parser_(&parser) {}
Command::~Command() = default;

Command* Command::add_subcommand(const std::string& name, const std::string& help) {
  return subcommands_.emplace_back(std::make_unique<Command>(*parser_->add_subcommand(name, help))).get();
}
Command* Command::group(const std::string& title) {
  parser_->group(title);
  return this;
}

Option* Command::keep(CLI::Option* option, std::shared_ptr<NumberBounds> bounds) {
  return options_.emplace_back(std::make_unique<Option>(option, std::move(bounds))).get();
}

template <class T>
Option* Command::add(const std::string& names, T& value, const std::string& help) {
  CLI::Option* const option = parser_->add_option(names, value, help);
  option->type_name(value_name(names, kind_of<T>()));
  using Element = typename Held<T>::Element;
  if constexpr (!std::is_arithmetic_v<Element>) {
    return keep(option);
  } else {
    const auto bounds = std::make_shared<NumberBounds>();
    const auto check = [bounds](std::string& given) {
      if constexpr (std::is_integral_v<Element>)
        return integer_fault<Element>(given, *bounds);
      else
        return number_fault(given, *bounds);
    };
    option->transform(CLI::Validator(check, ""));
    return keep(option, bounds);
  }
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
Option* Command::add_settings(std::vector<std::string>& value, const std::string& help) {
  return add_option("--set", value, help)->value_name("KEY=VALUE...")->allow_extra_args(false)->value_if(is_setting);
}
Option* Command::add_key_settings(std::vector<std::string>& value, const std::string& help) {
  takes_keys_ = true;
  return add_settings(value, help);
}
Option* Command::get_option(const std::string& name) {
  const auto kept = std::ranges::find_if(options_, [&name](const auto& one) { return one->has_name(name); });
  return kept != options_.end() ? kept->get() : keep(parser_->get_option(name));
}
std::size_t Command::count(const std::string& name) const { return parser_->count(name); }
void Command::callback(std::function<void()> run) {
  parser_->callback([this, run = std::move(run)] {
    if (!is_idle_) run();
  });
}
void Command::footer(const std::string& text) { parser_->footer(text); }
std::string Command::name() const { return parser_->get_name(); }
Command* Command::subcommand(const std::string& name) {
  return const_cast<Command*>(std::as_const(*this).subcommand(name));
}
const Command* Command::subcommand(const std::string& name) const {
  for (const auto& command : subcommands_)
    if (command->name() == name) return command.get();
  return nullptr;
}
const Option* Command::with_condition(const std::string& name) const {
  if (!name.starts_with("--")) return nullptr;
  for (const auto& option : options_)
    if (option->is_value_ && option->has_name(name)) return option.get();
  return nullptr;
}
std::vector<std::string> Command::with_values(const std::vector<std::string>& arguments) const {
  std::vector<std::string> written;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const Option* const option = with_condition(argument);
    if (option == nullptr) {
      written.push_back(argument);
      continue;
    }
    const auto follows = [&] { return i + 1 < arguments.size() && option->is_value_(arguments[i + 1]); };
    if (!follows()) {
      written.push_back(option->otherwise_.empty() ? argument : argument + "=" + option->otherwise_);
      continue;
    }
    do written.push_back(argument + "=" + arguments[++i]);
    while (option->is_list() && follows());
  }
  return written;
}
std::string Command::refused_word(const std::vector<std::string>& arguments, const std::string& argument) const {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const Option* const option = arguments[i] == argument ? with_condition(arguments[i - 1]) : nullptr;
    if (option != nullptr && !option->words_.empty()) return text(option->words_rule(), ", got '", argument, "'");
  }
  return {};
}
std::string Command::values_hint(const std::vector<std::string>& arguments) const {
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const Option* const option = with_condition(arguments[i - 1]);
    if (option != nullptr && !option->words_.empty() && !arguments[i].starts_with('-') &&
        !option->is_value_(arguments[i]))
      return text("\n  what follows ", option->words_rule(), " to be its value");
  }
  return {};
}

bool is_setting(const std::string& argument) {
  const std::size_t end = argument.find('=');
  const auto in_names = [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_' || byte == '-' || byte == '.';
  };
  return end != std::string::npos && end > 0 && argument[0] != '.' && argument[0] != '-' &&
         std::all_of(argument.begin(), argument.begin() + static_cast<std::ptrdiff_t>(end), in_names);
}

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& version)
    : parser_(std::make_unique<CLI::App>(description, name)),
      help_(std::make_shared<CommandHelp>()),
      commands_(*parser_) {
  // Subcommands get the formatter and the help of their parser when they are added.
  parser_->formatter(help_);
  parser_->set_help_flag("-h,--help", "print this help");
  parser_->require_subcommand(1);
  if (!version.empty())
    parser_->set_version_flag("--version", name + " " + version, "print the version, and how it was built");
}
CommandLine::~CommandLine() = default;

std::vector<std::string> CommandLine::names() const {
  std::vector<std::string> names;
  for (const CLI::App* command : parser_->get_subcommands([](const CLI::App*) { return true; }))
    names.push_back(command->get_name());
  return names;
}

std::string CommandLine::help(std::size_t columns, const std::string& command) const {
  help_->set_columns(columns);
  return command.empty() ? parser_->help() : parser_->get_subcommand(command)->help(parser_->get_name());
}

void CommandLine::run(const std::vector<std::string>& arguments) {
  const Command* const command = arguments.empty() ? nullptr : commands_.subcommand(arguments.front());
  try {
    const std::vector<std::string> all = command == nullptr ? arguments : command->with_values(arguments);
    // CLI11 takes them from the back.
    parser_->parse(std::vector<std::string>(all.rbegin(), all.rend()));
  } catch (const CLI::Success& help) {
    help_->set_columns(output_columns());
    if (parser_->exit(help) != 0 || std::fflush(stdout) != 0) throw Error("the help could not be written");
  } catch (const CLI::ParseError& error) {
    const auto parsed = parser_->get_subcommands();
    const CLI::App& parser = parsed.empty() ? *parser_ : *parsed.front();
    throw UsageError(text(command_fault(parser, hints_of(command), error, arguments), "\n  ", parser_->get_name(), " ",
                          parsed.empty() ? "" : parser.get_name() + " ", "--help lists the options"));
  }
}

}  // namespace engram

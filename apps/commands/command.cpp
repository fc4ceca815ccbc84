#include "apps/commands/command.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <type_traits>
#include <utility>

#include "apps/config/config_keys.hpp"
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

/// Decimal integers in the range of T, written back without a plus and leading zeros. CLI11 itself would take the
/// nearest number to one that is too large, 2^64 - 1 for -1 where none is negative, and 8 for 010.
template <class T>
CLI::Validator whole_number() {
  const auto check = [](std::string& given) {
    const bool negative = given.starts_with('-');
    const std::size_t digits = negative || given.starts_with('+') ? 1 : 0;
    std::size_t first = digits;
    while (first + 1 < given.size() && given[first] == '0') ++first;
    const std::string plain = (negative ? "-" : "") + given.substr(first);
    T value{};
    const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), value);
    // A sign of its own would be taken behind ours.
    const bool one_sign = digits == 0 || (given.size() > 1 && given[1] != '-');
    if (error == std::errc() && end == plain.data() + plain.size() && one_sign) {
      given = plain;
      return std::string();
    }
    return text("must be an integer from ", std::numeric_limits<T>::min(), " to ", std::numeric_limits<T>::max(),
                ", got '", given, "'");
  };
  return CLI::Validator(check, "");
}

/// The integers that a variable or the elements of a list are; void for others.
template <class T>
struct IntegerOf {
  using Type = std::conditional_t<std::is_integral_v<T>, T, void>;
};
template <class T>
struct IntegerOf<std::vector<T>> : IntegerOf<T> {};

/// "--steps" of "--steps=3".
std::string option_name(const std::string& argument) { return argument.substr(0, argument.find('=')); }

/// What is wrong with arguments that a command did not take. The value of an unknown option is among them too, and may
/// have been taken for something else: the option is what to name.
std::string unknown_argument(const CLI::App& command, const std::vector<std::string>& left) {
  for (const std::string& argument : left) {
    if (argument.size() < 2 || argument[0] != '-' || (argument[1] >= '0' && argument[1] <= '9')) continue;
    const std::string name = option_name(argument);
    std::string nearest;
    for (const CLI::Option* option : command.get_options())
      for (const std::string& known : option->get_lnames())
        if (nearest.empty() || edit_distance(name, "--" + known) < edit_distance(name, nearest)) nearest = "--" + known;
    return text("there is no option '", name, "'", nearest.empty() ? "" : "; the nearest is " + nearest);
  }
  std::string list;
  for (const std::string& argument : left) list += (list.empty() ? "'" : ", '") + argument + "'";
  return text("every argument must belong to an option or be one that the command takes, got ", list, " beside them");
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
  const auto check = [least, most](const std::string& given) {
    double value = 0;
    if (CLI::detail::lexical_cast(given, value) && value >= least && value <= most) return std::string();
    return text("must be a number from ", least, " to ", most, ", got '", given, "'");
  };
  option_->check(CLI::Validator(check, text("[", least, " - ", most, "]")));
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
Option* Option::value_if(std::function<bool(const std::string&)> is_value, const std::string& otherwise) {
  is_value_ = std::move(is_value);
  otherwise_ = otherwise;
  return this;
}
bool Option::has_name(const std::string& name) const { return option_->check_name(name); }
bool Option::is_list() const { return option_->get_items_expected_max() > 1; }

Command::Command(CLI::App& parser) : parser_(&parser) {}
Command::~Command() = default;

Command* Command::add_subcommand(const std::string& name, const std::string& help) {
  return subcommands_.emplace_back(std::make_unique<Command>(*parser_->add_subcommand(name, help))).get();
}

Option* Command::keep(CLI::Option* option) { return options_.emplace_back(std::make_unique<Option>(option)).get(); }

template <class T>
Option* Command::add(const std::string& names, T& value, const std::string& help) {
  CLI::Option* const option = parser_->add_option(names, value, help);
  using Integer = typename IntegerOf<T>::Type;
  if constexpr (!std::is_void_v<Integer>) option->transform(whole_number<Integer>());
  return keep(option);
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
std::string Command::name() const { return parser_->get_name(); }
const Command* Command::subcommand(const std::string& name) const {
  for (const auto& command : subcommands_)
    if (command->name() == name) return command.get();
  return nullptr;
}
std::vector<std::string> Command::with_values(const std::vector<std::string>& arguments) const {
  std::vector<std::string> written;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const auto option = std::ranges::find_if(options_, [&](const auto& one) {
      return one->is_value_ && argument.starts_with("--") && one->has_name(argument);
    });
    if (option == options_.end()) {
      written.push_back(argument);
      continue;
    }
    const auto follows = [&] { return i + 1 < arguments.size() && (*option)->is_value_(arguments[i + 1]); };
    if (!follows()) {
      written.push_back((*option)->otherwise_.empty() ? argument : argument + "=" + (*option)->otherwise_);
      continue;
    }
    do written.push_back(argument + "=" + arguments[++i]);
    while ((*option)->is_list() && follows());
  }
  return written;
}
void Command::footer(const std::string& text) { parser_->footer(text); }

bool is_setting(const std::string& argument) {
  const std::size_t end = argument.find('=');
  const auto in_names = [](char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_' || byte == '.';
  };
  return end != std::string::npos && end > 0 && argument[0] != '.' &&
         std::all_of(argument.begin(), argument.begin() + static_cast<std::ptrdiff_t>(end), in_names);
}

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& version)
    : parser_(std::make_unique<CLI::App>(description, name)), commands_(*parser_) {
  parser_->require_subcommand(1);
  if (!version.empty()) parser_->set_version_flag("--version", name + " " + version, "print the program's version");
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
    const Command* const command = arguments.empty() ? nullptr : commands_.subcommand(arguments.front());
    const std::vector<std::string> all = command == nullptr ? arguments : command->with_values(arguments);
    // CLI11 takes them from the back.
    parser_->parse(std::vector<std::string>(all.rbegin(), all.rend()));
  } catch (const CLI::Success& help) {
    if (parser_->exit(help) != 0 || std::fflush(stdout) != 0) throw Error("the help could not be written");
  } catch (const CLI::ParseError& error) {
    const auto parsed = parser_->get_subcommands();
    const CLI::App& command = parsed.empty() ? *parser_ : *parsed.front();
    // What is unknown is often a misspelling of what is missing.
    const std::vector<std::string> left = command.remaining();
    const bool misspelt = std::ranges::any_of(left, [](const std::string& one) { return one.starts_with("--"); });
    const bool unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                         (misspelt && dynamic_cast<const CLI::RequiredError*>(&error) != nullptr);
    throw UsageError(text(unknown ? unknown_argument(command, left) : error.what(), "\n  ", parser_->get_name(), " ",
                          parsed.empty() ? "" : parsed.front()->get_name() + " ", "--help lists the options"));
  }
}

}  // namespace engram

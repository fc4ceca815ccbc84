#include "apps/command_line/command_help.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "apps/terminal/wrapped_text.hpp"

namespace engram {
namespace {

/// What is on the left of a list, and what it means.
using HelpRow = std::pair<std::string, std::string>;

constexpr std::size_t kUsageIndent = 4;

/// `longest`: that of the names, if those of other lists count too.
std::string list_of(const std::string& title, const std::vector<HelpRow>& rows, std::size_t columns,
                    std::size_t longest = 0) {
  if (rows.empty()) return {};
  constexpr std::size_t kIndent = 2, kGap = 2;
  for (const HelpRow& row : rows) longest = std::max(longest, row.first.size());
  const std::size_t column = std::min(kIndent + longest + kGap, columns * 3 / 8);
  std::string list = "\n" + title + ":\n";
  for (const auto& [name, meaning] : rows) {
    std::string left = std::string(kIndent, ' ') + name;
    if (left.size() + kGap > column) {
      list += hanging(wrapped_parts({left}, columns, 2 * kIndent), 2 * kIndent);
      left.clear();
    }
    left.resize(column, ' ');
    list += left + hanging(wrapped_text(meaning, columns - column), column);
  }
  return list;
}

bool is_list(const CLI::Option& option) {
  return option.get_expected_max() >= CLI::detail::expected_max_vector_size && option.get_allow_extra_args() &&
         option.get_delimiter() == '\0';
}

std::string names_of(const std::vector<const CLI::Option*>& options) {
  std::string names;
  for (const CLI::Option* option : options) names += (names.empty() ? "" : ", ") + option->get_name();
  return names;
}

}  // namespace

std::string option_value(const CLI::Option& option) {
  if (option.get_expected_max() == 0 || option.get_type_name().empty()) return {};
  const std::string value = option.get_type_name() + (is_list(option) ? "..." : "");
  return option.get_expected_min() == 0 ? "[" + value + "]" : value;
}

std::string option_meaning(const CLI::Option& option, const std::vector<const CLI::Option*>& all) {
  std::string meaning = option.get_description();
  const auto those_in = [&all](const std::set<CLI::Option*>& some) {
    std::vector<const CLI::Option*> listed;  // a set of pointers has no order that means anything
    for (const CLI::Option* one : all)
      if (some.contains(const_cast<CLI::Option*>(one))) listed.push_back(one);
    return listed;
  };
  if (option.get_required() && option.nonpositional()) meaning += " (required)";
  const auto needed = those_in(option.get_needs()), excluded = those_in(option.get_excludes());
  if (!needed.empty()) meaning += " (with " + names_of(needed) + ")";
  if (!excluded.empty()) meaning += " (without " + names_of(excluded) + ")";
  const std::string usual = option.get_default_str();
  if (!usual.empty()) meaning += usual.starts_with('[') ? " " + usual : " [" + usual + "]";
  return meaning;
}

std::vector<std::string> usage_parts(const CLI::App& app) {
  std::vector<std::string> parts;
  if (!app.get_subcommands({}).empty()) parts.emplace_back("COMMAND");
  const auto options = app.get_options({});
  for (const CLI::Option* option : options)
    if (option->get_positional())
      parts.push_back(option->get_required() ? option_value(*option) : "[" + option_value(*option) + "]");
  for (const CLI::Option* option : options)
    if (option->nonpositional() && option->get_required()) parts.push_back(option_with_value(*option));
  parts.emplace_back("[OPTIONS]");
  return parts;
}

std::string option_with_value(const CLI::Option& option) {
  const std::string value = option_value(option);
  if (option.get_positional()) return value;
  return option.get_name() + (value.empty() ? "" : " " + value);
}

void CommandHelp::set_columns(std::size_t columns) {
  constexpr std::size_t kLeast = 40, kMost = 120;  // wider lines are hard to read
  columns_ = std::clamp(columns, kLeast, kMost);
}

std::string CommandHelp::make_help(const CLI::App* app, std::string name, CLI::AppFormatMode) const {
  std::vector<std::string> usage = usage_parts(*app);
  usage.insert(usage.begin(), {"Usage:", name});
  std::string help = hanging(wrapped_text(app->get_description(), columns_), 0) + "\n" +
                     hanging(wrapped_parts(usage, columns_, kUsageIndent), kUsageIndent);
  const auto all = app->get_options({});
  std::vector<HelpRow> positionals, options;
  for (const CLI::Option* option : all) {
    if (option->get_group().empty()) continue;
    const std::string value = option_value(*option);
    if (option->get_positional())
      positionals.emplace_back(value, option_meaning(*option, all));
    else
      options.emplace_back(option->get_name(false, true) + (value.empty() ? "" : " " + value),
                           option_meaning(*option, all));
  }
  help += list_of("Arguments", positionals, columns_) + list_of("Options", options, columns_);
  const auto commands = app->get_subcommands([](const CLI::App*) { return true; });
  std::vector<std::string> groups;
  std::size_t longest = 0;
  for (const CLI::App* command : commands) longest = std::max(longest, command->get_name().size());
  for (const CLI::App* command : commands)
    if (std::ranges::find(groups, command->get_group()) == groups.end()) groups.push_back(command->get_group());
  for (const std::string& group : groups) {
    std::vector<HelpRow> rows;
    for (const CLI::App* command : commands)
      if (command->get_group() == group) rows.emplace_back(command->get_name(), command->get_description());
    help += list_of(group, rows, columns_, longest);
  }
  if (const std::string footer = app->get_footer(); !footer.empty())
    help += "\n" + hanging(wrapped_text(footer, columns_), 0);
  return help;
}

}  // namespace engram

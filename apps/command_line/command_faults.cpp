#include "apps/command_line/command_faults.hpp"

#include <algorithm>
#include <string_view>

#include "apps/command_line/command_help.hpp"
#include "apps/run/config/config_keys.hpp"
#include "apps/terminal/edit_distance.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

using ArgumentList = std::vector<std::string>;

/// "--steps" of "--steps=3".
std::string option_name(const std::string& argument) { return argument.substr(0, argument.find('=')); }

std::string without_dashes(const std::string& name) {
  return name.substr(std::min(name.find_first_not_of('-'), name.size()));
}

bool looks_like_option(const std::string& argument) {
  return argument.size() >= 2 && argument[0] == '-' && !(argument[1] >= '0' && argument[1] <= '9') &&
         argument[1] != '.';
}

/// Whether one is the other and more, as --temp of --temperature.
bool is_beginning(const std::string& given, const std::string& known) {
  constexpr std::size_t kLeast = 3;
  const std::size_t shorter = std::min(given.size(), known.size());
  return shorter >= kLeast && given.compare(0, shorter, known, 0, shorter) == 0;
}

/// "--seed" for "sead"; empty: none is near. The key of a configuration is not the beginning of an option.
std::string nearest_option(const CLI::App& parser, const std::string& given, bool is_key) {
  std::string nearest;
  for (const CLI::Option* option : parser.get_options({}))
    for (const std::string& known : option->get_lnames())
      if (!option->get_group().empty() && (is_near(given, known) || (!is_key && is_beginning(given, known))) &&
          (nearest.empty() || edit_distance(given, known) < edit_distance(given, nearest)))
        nearest = known;
  return nearest.empty() ? "" : "--" + nearest;
}

/// What follows an unknown option's name in the arguments.
std::string value_given(const ArgumentList& given, const std::string& name) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (option_name(given[i]) != name) continue;
    if (given[i].size() > name.size()) return given[i].substr(name.size() + 1);
    if (i + 1 < given.size() && !looks_like_option(given[i + 1])) return given[i + 1];
  }
  return "VALUE";
}

/// How the keys of this name, of whatever section and family, are given: "--set schedule.rate=0.1".
std::string as_setting(std::string name, const std::string& value) {
  std::ranges::replace(name, '-', '_');
  ArgumentList keys;
  for (const ModelFamily family : kModelFamilies)
    for (const ConfigKey& key : config_keys(family))
      if ((key.name == name || (name.ends_with(key.name) && key.full_name() == name)) &&
          std::ranges::find(keys, key.full_name()) == keys.end())
        keys.push_back(key.full_name());
  std::string settings;
  for (const std::string& key : keys) settings += text(settings.empty() ? "" : " or ", "--set ", key, "=", value);
  return settings;
}

/// "a, b and c must be given"
std::string must_be_given(const ArgumentList& missing) {
  std::string list;
  for (std::size_t i = 0; i < missing.size(); ++i)
    list += text(i == 0 ? "" : i + 1 < missing.size() ? ", " : " and ", missing[i]);
  return list + " must be given";
}

/// What is required and was not given, but for what the names are near to.
ArgumentList missing_options(const CLI::App& parser, const ArgumentList& nearest) {
  ArgumentList missing;
  for (const CLI::Option* option : parser.get_options({}))
    if (option->get_required() && option->count() == 0 &&
        std::ranges::find(nearest, option->get_name()) == nearest.end())
      missing.push_back(option_with_value(*option));
  return missing;
}

std::string unknown_options(const CLI::App& parser, const CommandHints& hints, const ArgumentList& unknown,
                            const ArgumentList& given) {
  std::string fault;
  ArgumentList nearest;
  for (const std::string& name : unknown) {
    const std::string plain = without_dashes(name);
    const std::string setting = hints.takes_keys ? as_setting(plain, value_given(given, name)) : "";
    const std::string near = nearest_option(parser, plain, !setting.empty());
    if (!near.empty()) nearest.push_back(near);
    fault += text(
        fault.empty() ? "" : "\n  ", "there is no option '", name, "'", near.empty() ? "" : "; the nearest is " + near,
        setting.empty() ? "" : text(near.empty() ? "; " : ", and ", "a key of the config is given as ", setting));
  }
  // Positionals may have got what was meant for an unknown option.
  const ArgumentList missing = missing_options(parser, nearest);
  return missing.empty() ? fault : fault + "\n  " + must_be_given(missing);
}

std::string left_over(const CommandHints& hints, const ArgumentList& left, const ArgumentList& given) {
  std::string list;
  for (const std::string& argument : left) {
    const std::string refused = hints.refused_word(given, argument);
    if (!refused.empty()) return refused;
    list += (list.empty() ? "'" : ", '") + argument + "'";
  }
  return text("every argument must belong to an option or be one that the command takes, got ", list, " beside them",
              hints.values_hint(given));
}

/// Of options that were given too few or too many values: CLI11 begins with the name.
std::string wrong_count(const CLI::App& parser, const std::string& said) {
  const CLI::Option* const option = parser.get_option_no_throw(said.substr(0, said.find(':')));
  if (option == nullptr) return said;
  const std::size_t got = option->count();
  if (got > 1) return text(option->get_name(), " must be given once, got it ", got, " times");
  return text(option->get_name(), " must have a value, ", option->get_type_name(), ", got none");
}

/// "--target requires --solve" and the like, in the words of other errors.
std::string two_options(const std::string& said, std::string_view rule, std::string_view got) {
  const std::size_t end = said.find(' '), start = said.rfind(' ');
  return text(said.substr(0, end), rule, said.substr(start + 1), got);
}

}  // namespace

std::string command_fault(const CLI::App& parser, const CommandHints& hints, const CLI::ParseError& error,
                          const std::vector<std::string>& given) {
  const ArgumentList left = parser.remaining();
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr,
             missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  ArgumentList unknown;
  for (const std::string& argument : left)
    if (looks_like_option(argument) && std::ranges::find(unknown, option_name(argument)) == unknown.end())
      unknown.push_back(option_name(argument));
  if ((extra || missing) && !unknown.empty()) return unknown_options(parser, hints, unknown, given);
  if (extra) return left_over(hints, left, given);
  if (missing) {
    const ArgumentList lacking = missing_options(parser, {});
    if (!lacking.empty()) return must_be_given(lacking);
  }
  const std::string said = error.what();
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return wrong_count(parser, said);
  if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr)
    return two_options(said, " works with ", ", got it without");
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr)
    return two_options(said, " works without ", ", got both");
  return said;
}

}  // namespace engram

/// What a command says of itself, from what CLI11 knows of it.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iterator>

#include "apps/command_line/command.hpp"
#include "apps/command_line/command_description.hpp"
#include "apps/command_line/command_help.hpp"

namespace engram {

OptionDescription Option::describe() const {
  OptionDescription described{
      .names = {}, .value = option_value(*option_), .meaning = {}, .offered = offered_, .is_list = false};
  // N,N,... is one value.
  described.is_list = described.value.ends_with("...") && described.value.find(',') == std::string::npos;
  for (const std::string& name : option_->get_snames()) described.names.push_back("-" + name);
  for (const std::string& name : option_->get_lnames()) described.names.push_back("--" + name);
  return described;
}

CommandDescription Command::describe() const {
  CommandDescription described{.name = parser_->get_name(),
                               .summary = parser_->get_description(),
                               .group = parser_->get_group(),
                               .footer = parser_->get_footer(),
                               .usage = usage_parts(*parser_),
                               .arguments = {},
                               .options = {},
                               .commands = {}};
  const CLI::App& parser = *parser_;
  const std::vector<const CLI::Option*> all = parser.get_options({});
  for (const CLI::Option* option : all) {
    if (option->get_group().empty()) continue;
    const auto kept = std::ranges::find_if(options_, [option](const auto& one) { return one->option_ == option; });
    // --help and --version are the parser's own.
    OptionDescription one =
        kept != options_.end() ? (*kept)->describe() : Option(const_cast<CLI::Option*>(option)).describe();
    one.meaning = option_meaning(*option, all);
    (option->get_positional() ? described.arguments : described.options).push_back(std::move(one));
  }
  std::ranges::transform(subcommands_, std::back_inserter(described.commands),
                         [](const auto& command) { return command->describe(); });
  return described;
}

}  // namespace engram

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/commands/commands.hpp"
#include "apps/commands/output.hpp"
#include "apps/data/files/read_file.hpp"
#include "apps/run/config/shipped_configs.hpp"
#include "apps/terminal/wrapped_text.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct ConfigsArguments {
  std::string name, filter;
  bool names = false, json = false;
};

/// The folder of a name, with its last slash; empty for one that is in none.
std::string folder_of(const std::string& name) { return name.substr(0, name.rfind('/') + 1); }

/// What can be listed: what is in no folder first, then in the order of names, which has every folder's below each
/// other.
std::vector<ShippedConfig> listed(const std::string& filter) {
  std::vector<ShippedConfig> configs = shipped_configs();
  const std::string folder = (share_folder() / "configs").string();
  if (configs.empty()) throw FileError(text("configs: there must be some in '", folder, "', found none"));
  std::erase_if(configs, [&](const ShippedConfig& one) { return one.name.find(filter) == std::string::npos; });
  if (configs.empty()) throw UsageError(text("configs: --filter must be a part of a name, got '", filter, "'"));
  // Not std::ranges::stable_partition: its result is none to Clang 14 with this C++ library.
  std::stable_partition(configs.begin(), configs.end(),
                        [](const ShippedConfig& one) { return folder_of(one.name).empty(); });
  return configs;
}

std::string comment_of(const ShippedConfig& config) { return opening_comment(data::read_bytes(config.file)); }

std::string table_of_configs(const std::vector<ShippedConfig>& configs, std::size_t columns) {
  std::string table, folder;
  for (const ShippedConfig& config : configs) {
    if (folder_of(config.name) != folder) {
      folder = folder_of(config.name);
      table += (table.empty() ? "" : "\n") + folder.substr(0, folder.size() - 1) + ":\n";
    }
    constexpr std::size_t kIndent = 2, kDeeper = 6, kMost = 100;
    const std::string name = config.name.substr(folder.size());
    table += std::string(kIndent, ' ') + name + "\n";
    if (const std::string comment = comment_of(config); !comment.empty())
      table += std::string(kDeeper, ' ') + hanging(wrapped_text(comment, std::min(columns, kMost) - kDeeper), kDeeper);
  }
  return table;
}

void run_configs(const ConfigsArguments& arguments) {
  if (!arguments.name.empty()) return print(data::read_bytes(find_config(arguments.name)));
  const std::vector<ShippedConfig> configs = listed(arguments.filter);
  if (arguments.json) {
    nlohmann::json object{{"configs", nlohmann::json::array()}};
    for (const ShippedConfig& one : configs)
      object["configs"].push_back({{"name", one.name}, {"file", one.file.string()}, {"about", comment_of(one)}});
    return print_json(object);
  }
  std::string names;
  for (const ShippedConfig& one : configs) names += one.name + "\n";
  print(arguments.names ? names : table_of_configs(configs, output_columns()));
}

}  // namespace

Command* add_configs_command(Command& program) {
  Command* command = program.add_subcommand("configs", "list the configurations that come with Engram, or print one");
  const auto arguments = std::make_shared<ConfigsArguments>();
  Option* name = command->add_option("name", arguments->name, "print this one, to save and to change [list them]")
                     ->value_name("CONFIG");
  Option* filter = command->add_option("--filter", arguments->filter, "only those with this text in their names");
  Option* names = command->add_flag("--names", arguments->names, "names alone, a line each");
  Option* json = command->add_flag("--json", arguments->json, "print one JSON object");
  for (Option* other : {filter, names, json}) name->excludes(other);
  names->excludes(json);
  command->footer(
      "--config takes such a name, kjv/kjv-quick or kjv-quick alone, wherever there is no file of that name.");
  command->callback([arguments] { run_configs(*arguments); });
  return command;
}

}  // namespace engram

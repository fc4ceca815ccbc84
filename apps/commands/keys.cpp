#include "apps/commands/commands.hpp"

#include <memory>
#include <string>

#include "apps/commands/output.hpp"
#include "apps/commands/shared_options.hpp"
#include "apps/run/config/config_keys.hpp"
#include "apps/run/config/config_template.hpp"
#include "core/names.hpp"

namespace engram {
namespace {

struct KeysArguments {
  std::string family{name_of(ModelFamily::all_attention)};
  bool toml = false;
};

void run_keys(const KeysArguments& arguments) {
  const auto family = parse_named<ModelFamily>("keys: the family", arguments.family);
  print(arguments.toml ? config_template(family) : config_help(family));
}

}  // namespace

Command* add_keys_command(Command& program) {
  Command* command = program.add_subcommand("keys", "list the keys of a configuration, or print a whole one");
  const auto arguments = std::make_shared<KeysArguments>();
  command->add_option("family", arguments->family, "kind of model: " + choices_text<ModelFamily>())
      ->suggest(words_of<ModelFamily>())
      ->capture_default_str();
  command->add_flag("--toml", arguments->toml,
                    "print a configuration to save, change and train, with what each key means and may be");
  command->footer(
      "A configuration is a TOML file with the sections [model], [optimizer], [schedule] and [training], and, for "
      "models with product-key memories, [product_key].\n"
      "engram configs lists those of the papers, and small ones for a laptop.");
  command->callback([arguments] { run_keys(*arguments); });
  return command;
}

}  // namespace engram

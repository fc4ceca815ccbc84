#include "apps/commands/keys.hpp"

#include <memory>
#include <string>

#include "apps/commands/output.hpp"
#include "apps/config/config_keys.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

void run_keys(const std::string& name) {
  std::string families;
  for (const ModelFamily family : kModelFamilies) {
    if (name == name_of(family)) return print(config_help(family));
    families += text(families.empty() ? "" : " or ", name_of(family));
  }
  throw UsageError(text("keys: the family must be ", families, ", got '", name, "'"));
}

}  // namespace

Command* add_keys_command(Command& program) {
  Command* command = program.add_subcommand("keys", "list the keys of a configuration");
  const auto family = std::make_shared<std::string>(name_of(ModelFamily::all_attention));
  command->add_option("family", *family, "kind of model: all_attention, transformer_xl, product_key or recurrent")
      ->capture_default_str();
  command->footer(
      "A configuration is a TOML file with the sections [model], [optimizer], [schedule] and [training],\n"
      "and, for models with product-key memories, [product_key].\n"
      "apps/configs holds those of the papers, and small ones for a laptop.");
  command->callback([family] { run_keys(*family); });
  return command;
}

}  // namespace engram

#include "apps/commands/import.hpp"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/commands/output.hpp"
#include "apps/interop/transfo_xl_import.hpp"
#include "core/json.hpp"

namespace engram {
namespace {

struct ImportArguments {
  std::string from, weights, out, config, vocabulary;
  std::vector<std::string> settings;
  bool json = false;
};

void run_import(const ImportArguments& arguments) {
  const TransfoXlImported imported = import_transfo_xl({.weights = arguments.weights,
                                                        .out = arguments.out,
                                                        .config = arguments.config,
                                                        .settings = arguments.settings,
                                                        .vocabulary = arguments.vocabulary});
  const TransformerXlOptions& model = imported.options;
  if (arguments.json) {
    print_json({{"checkpoint", arguments.out},
                {"tensors", imported.tensors},
                {"dtype", name_of(imported.dtype)},
                {"layers", model.layers},
                {"width", model.width},
                {"vocabulary", model.vocabulary},
                {"memory", model.memory}});
    return;
  }
  print(fmt::format("{}: {} tensors in {}, {} layers of width {}, a vocabulary of {}, a memory of {}\n", arguments.out,
                    imported.tensors, name_of(imported.dtype), model.layers, model.width, model.vocabulary,
                    model.memory));
}

}  // namespace

Command* add_import_command(Command& program) {
  Command* command = program.add_subcommand("import", "turn weights of another program into a checkpoint");
  const auto arguments = std::make_shared<ImportArguments>();
  command->add_option("--from", arguments->from, "transfo-xl: Hugging Face's TransfoXLLMHeadModel")
      ->required()
      ->one_of({"transfo-xl"});
  command->add_option("weights", arguments->weights, "safetensors file")->required();
  command->add_option("--out", arguments->out, "checkpoint to write, for evaluate and generate")->required();
  command->add_option("--config-json", arguments->config,
                      "the model's config.json [the one beside the weights; without one the tensors' shapes say what "
                      "they can]");
  command
      ->add_option("--set", arguments->settings,
                   "a key of config.json with its value in JSON, in the place of the file's: mem_len=1600")
      ->allow_extra_args(false);  // what follows may be the file
  command->add_option("--vocab", arguments->vocabulary,
                      "a data folder, whose vocabulary the model gets, or a text file with one token on every line, in "
                      "the order of the ids; of both as many as the model has [placeholders <0>, <1>, ...]");
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments] { run_import(*arguments); });
  return command;
}

}  // namespace engram

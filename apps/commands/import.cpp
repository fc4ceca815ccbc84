#include "apps/commands/commands.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/commands/output.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/data/vocabulary/placeholders.hpp"
#include "apps/run/weights/adaptive_span_import.hpp"
#include "apps/run/weights/foreign_program.hpp"
#include "apps/run/weights/transfo_xl_import.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"
#include "core/log.hpp"

namespace engram {
namespace {

struct ImportArguments {
  std::string from, weights, out, config, vocabulary, data;
  std::string cluster_order = "auto", split = "valid";
  std::vector<std::string> settings;
  bool json = false;
};

/// The order that an option names; none: what tells it says it.
std::optional<ClusterOrder> order_of(const ImportArguments& arguments) {
  for (const ClusterOrder order : {ClusterOrder::natural, ClusterOrder::reversed})
    if (arguments.cluster_order == name_of(order)) return order;
  return std::nullopt;
}

/// That a model was imported without the names of its symbols, where it was.
void warn_of_placeholders(const ImportArguments& arguments, std::int64_t vocabulary) {
  if (arguments.vocabulary.empty() && arguments.data.empty())
    log(LogLevel::warning, data::placeholder_advice(vocabulary));
}

/// Has no order of clusters to be told, and no config.json.
void run_adaptive_span(const ImportArguments& arguments, const Command& command) {
  for (const char* option : {"--config-json", "--cluster-order", "--data"})
    if (command.count(option) > 0)
      throw UsageError(text("import: --from ", kAdaptiveSpanProgram, " must come without ", option,
                            ", got it\n  its weights tell what that would say"));
  WorkProgress progress(text("importing '", arguments.weights, "'"), "bytes");
  const AdaptiveSpanImported imported = import_adaptive_span({.weights = arguments.weights,
                                                              .out = arguments.out,
                                                              .settings = arguments.settings,
                                                              .vocabulary = arguments.vocabulary,
                                                              .watch = progress.watch()});
  progress.end();
  const AllAttentionOptions& model = imported.options;
  for (const std::string& warning : imported.warnings) log(LogLevel::warning, warning);
  if (model.max_span < model.ramp)
    log(LogLevel::info, "no tensor tells the ramp: --set adapt_span_ramp=N gives it, that program's --adapt-span-ramp");
  warn_of_placeholders(arguments, model.vocabulary);
  if (arguments.json) {
    print_json({{"checkpoint", arguments.out},
                {"tensors", imported.tensors},
                {"dtype", name_of(imported.dtype)},
                {"layers", model.layers},
                {"width", model.width},
                {"vocabulary", model.vocabulary},
                {"symbols", imported.symbols},
                {"memory_mode", name_of(model.memory_mode)},
                {"slots", model.slots},
                {"max_span", model.max_span},
                {"ramp", model.ramp}});
    return;
  }
  print_report(
      fmt::format("{}: {} tensors in {}\n  {} layers of width {}, spans of up to {} with a ramp of {}\n"
                  "  a vocabulary of {} {}\n",
                  arguments.out, imported.tensors, name_of(imported.dtype), model.layers, model.width, model.max_span,
                  model.ramp, model.vocabulary, imported.symbols));
}

void run_transfo_xl(const ImportArguments& arguments) {
  WorkProgress progress(text("importing '", arguments.weights, "'"), "bytes");
  const TransfoXlImported imported = import_transfo_xl({.weights = arguments.weights,
                                                        .out = arguments.out,
                                                        .config = arguments.config,
                                                        .settings = arguments.settings,
                                                        .vocabulary = arguments.vocabulary,
                                                        .cluster_order = order_of(arguments),
                                                        .data = arguments.data,
                                                        .split = arguments.split,
                                                        .watch = progress.watch()});
  progress.end();
  if (!imported.cluster_order.note.empty()) log(LogLevel::info, imported.cluster_order.note);
  const TransformerXlOptions& model = imported.options;
  warn_of_placeholders(arguments, model.vocabulary);
  if (arguments.json) {
    print_json({{"checkpoint", arguments.out},
                {"tensors", imported.tensors},
                {"dtype", name_of(imported.dtype)},
                {"layers", model.layers},
                {"width", model.width},
                {"vocabulary", model.vocabulary},
                {"symbols", imported.symbols},
                {"memory", model.memory},
                {"cluster_order", name_of(imported.cluster_order.order)}});
    return;
  }
  print_report(fmt::format("{}: {} tensors in {}\n  {} layers of width {}, a memory of {}\n  a vocabulary of {} {}\n",
                           arguments.out, imported.tensors, name_of(imported.dtype), model.layers, model.width,
                           model.memory, model.vocabulary, imported.symbols));
}

void run_import(const ImportArguments& arguments, const Command& command) {
  if (arguments.data.empty() && command.count("--split") > 0)
    throw UsageError("import: --split is that of --data, got none");
  check_output_weights("import: --out", arguments.out, true);
  if (arguments.from == kAdaptiveSpanProgram)
    run_adaptive_span(arguments, command);
  else
    run_transfo_xl(arguments);
}

}  // namespace

Command* add_import_command(Command& program) {
  Command* command = program.add_subcommand("import", "turn weights of another program into a checkpoint");
  const auto arguments = std::make_shared<ImportArguments>();
  command
      ->add_option(
          "--from", arguments->from,
          "transfo-xl: Hugging Face's TransfoXLLMHeadModel; transformer-xl: Transformer-XL's own PyTorch program "
          "(names of tensors tell these two apart); adaptive-span: the released program of adaptive spans and "
          "of persistent memory")
      ->required()
      ->one_of({kTransfoXlProgram.data(), kTransformerXlProgram.data(), kAdaptiveSpanProgram.data()})
      ->value_name("PROGRAM");
  command
      ->add_option("weights", arguments->weights,
                   "file of safetensors or of PyTorch (.bin, .pt), of which nothing is executed")
      ->required();
  command->add_option("--out", arguments->out, "checkpoint to write, for evaluate, generate and train --from")
      ->required()
      ->value_name("FILE");
  command->add_option("--config-json", arguments->config,
                      "the model's config.json [the one beside the weights; without one the tensors' shapes say what "
                      "they can]");
  command->add_settings(arguments->settings,
                        "keys of config.json with values in JSON, in the place of the file's: mem_len=1600; of "
                        "adaptive-span: adapt_span_ramp [32], block_size, dropout, emb_dropout");
  command
      ->add_option("--vocab", arguments->vocabulary,
                   "a data folder, whose vocabulary the model gets; a text file with one token on every line, in the "
                   "order of the ids; or a pickled vocabulary or corpus of these programs (.pkl, .bin, .pt); of all "
                   "as many as the model has [placeholders <0>, <1>, ...]")
      ->value_name("PATH");
  command
      ->add_option("--cluster-order", arguments->cluster_order,
                   "of the slots of clusters in the file: natural (Hugging Face's class), reversed (the original "
                   "PyTorch program), or auto: by --data, names of tensors and config.json")
      ->one_of({"natural", "reversed", "auto"})
      ->capture_default_str();
  command->add_option("--data", arguments->data,
                      "a data folder, whose vocabulary the model gets without --vocab: the order of clusters is the "
                      "one under which its first tokens are the more probable");
  command->add_option("--split", arguments->split, "with --data: train, valid or test")
      ->suggest({"train", "valid", "test"})
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([command, arguments] { run_import(*arguments, *command); });
  return command;
}

}  // namespace engram

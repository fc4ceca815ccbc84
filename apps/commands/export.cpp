#include "apps/commands/commands.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "apps/commands/model_arguments.hpp"
#include "apps/commands/output.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/run/weights/adaptive_span_export.hpp"
#include "apps/run/weights/transfo_xl_export.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

constexpr const char* kToTransfoXl = "transfo-xl";
constexpr const char* kToTransformerXl = "transformer-xl";
constexpr const char* kToAdaptiveSpan = "adaptive-span";

struct ExportArguments {
  RunArguments trained;
  std::string to, out;
  std::vector<std::string> settings;
  bool json = false;
};

void run_adaptive_span_export(const ExportArguments& arguments) {
  if (!arguments.settings.empty())
    throw UsageError(text("export: --to ", kToAdaptiveSpan, " must come without --set, got '", arguments.settings[0],
                          "'\n  such a file says nothing but weights"));
  WorkProgress progress(text("exporting '", arguments.trained.run, "'"), "bytes");
  const std::size_t tensors = export_adaptive_span({.run = arguments.trained.run,
                                                    .kind = arguments.trained.kind(),
                                                    .out = arguments.out,
                                                    .watch = progress.watch()});
  progress.end();
  if (arguments.json)
    print_json({{"weights", arguments.out}, {"tensors", tensors}});
  else
    print_report(fmt::format("{}: {} tensors\n", arguments.out, tensors));
}

void run_transfo_xl_export(const ExportArguments& arguments) {
  const std::filesystem::path config = std::filesystem::path(arguments.out).parent_path() / "config.json";
  std::error_code ignored;
  if (std::filesystem::exists(config, ignored))
    check_output_file("export: config.json, which goes beside --out,", config.string(),
                      {"{\n  \"model_type\": \"transfo-xl\""});
  WorkProgress progress(text("exporting '", arguments.trained.run, "'"), "bytes");
  const TransfoXlExported exported = export_transfo_xl(
      {.run = arguments.trained.run,
       .kind = arguments.trained.kind(),
       .out = arguments.out,
       .settings = arguments.settings,
       .program = arguments.to == kToTransformerXl ? TransfoXlProgram::original : TransfoXlProgram::hugging_face,
       .watch = progress.watch()});
  progress.end();
  if (arguments.json) {
    print_json({{"weights", arguments.out}, {"config", exported.config.string()}, {"tensors", exported.tensors}});
    return;
  }
  print_report(fmt::format("{}: {} tensors; {}\n", arguments.out, exported.tensors, exported.config.string()));
}

/// What is written is no file of PyTorch, whatever it is called; PyTorch refuses to load it under such a name as under
/// any other, with an error that speaks of pickles.
void check_name(const std::string& out) {
  const std::string ending = std::filesystem::path(out).extension().string();
  for (const char* of_pytorch : {".pt", ".pth", ".bin", ".ckpt", ".pkl"})
    if (ending == of_pytorch)
      throw UsageError(text("export: --out must name a file of safetensors, which is what is written, got '", out,
                            "', the name of a file of PyTorch\n  end it with .safetensors; "
                            "docs/guide/released-weights.md#export makes a .pt of that in a few lines of Python"));
}

void run_export(const ExportArguments& arguments) {
  check_name(arguments.out);
  check_output_weights("export: --out", arguments.out, false);
  if (arguments.to == kToAdaptiveSpan)
    run_adaptive_span_export(arguments);
  else
    run_transfo_xl_export(arguments);
}

}  // namespace

Command* add_export_command(Command& program) {
  Command* command = program.add_subcommand("export", "write a trained model as another program's weights");
  const auto arguments = std::make_shared<ExportArguments>();
  command
      ->add_option(
          "--to", arguments->to,
          "transfo-xl: Hugging Face's TransfoXLLMHeadModel; transformer-xl: a state dict of Transformer-XL's own "
          "PyTorch program; adaptive-span: one of the released program of adaptive spans and of persistent "
          "memory")
      ->required()
      ->one_of({kToTransfoXl, kToTransformerXl, kToAdaptiveSpan})
      ->value_name("PROGRAM");
  arguments->trained.add_run(*command, "folder of a run, or a checkpoint");
  command
      ->add_option("--out", arguments->out,
                   "safetensors file to write, FILE.safetensors; of the first two config.json is written beside it")
      ->required()
      ->value_name("FILE");
  command->add_settings(arguments->settings,
                        "what the model is to remember and see there: model.memory=N, model.memory_start=zeros, "
                        "model.visibility=all or last_memory, model.clamp=N; not of adaptive-span");
  arguments->trained.add_best(*command);
  command->add_flag("--json", arguments->json, "print one JSON object");
  command->callback([arguments] { run_export(*arguments); });
  return command;
}

}  // namespace engram

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "apps/commands/commands.hpp"
#include "apps/commands/output.hpp"
#include "apps/commands/output_file.hpp"
#include "apps/commands/shared_options.hpp"
#include "apps/run/config/run_config_file.hpp"
#include "apps/run/folder/build_facts.hpp"
#include "apps/studies/tape/model_tape.hpp"
#include "apps/studies/tape/small_models.hpp"
#include "apps/tape/tape_graph.hpp"
#include "apps/tape/tape_json.hpp"
#include "apps/tape/tape_page.hpp"
#include "apps/terminal/work_progress.hpp"
#include "autograd/tape_listing.hpp"
#include "core/error.hpp"
#include "core/files/durable_file.hpp"
#include "core/files/json.hpp"
#include "core/names.hpp"

namespace engram {
namespace {

struct TapeArguments {
  std::string config, family{name_of(ModelFamily::all_attention)}, dtype, device = "cpu";
  std::vector<std::string> overrides;
  std::int64_t vocabulary = 0, block = 0, batch = 0;
  int threads = 0;
  ModelTapeOptions options;
  std::string out, dot, svg;
  bool json = false;
};

RunConfig config_of(const TapeArguments& arguments) {
  const auto family = parse_named<ModelFamily>("tape: --family", arguments.family);
  RunConfig config =
      arguments.config.empty()
          ? parse_run_config(small_model(family), text("the small model of ", arguments.family), arguments.overrides)
          : load_run_config(arguments.config, arguments.overrides);
  if (arguments.vocabulary != 0) config.model.set_vocabulary(arguments.vocabulary);
  if (arguments.block != 0) config.training.block = arguments.block;
  if (arguments.batch != 0) {
    config.training.batch = arguments.batch;
    config.training.split = 1;
  }
  config.check();
  return config;
}

/// One line for each file that was written.
std::string write_files(const TapeArguments& arguments, const TapeRecording& recording) {
  std::string lines;
  const auto write = [&](const std::string& file, const std::string& contents) {
    write_durably(file, contents);
    lines += fmt::format("{}: {} operations, {}\n", file, recording.ops.size(), listed_bytes(contents.size()));
  };
  const std::string graph = tape_graph(recording);
  // Before anything is written, as Graphviz may be missing.
  const std::string drawing = arguments.svg.empty() ? "" : drawn_by_graphviz(graph);
  if (!arguments.dot.empty()) write(arguments.dot, graph);
  if (!arguments.svg.empty()) write(arguments.svg, drawing);
  if (!arguments.out.empty()) write(arguments.out, tape_page(recording, text("Engram ", build_facts().version)));
  return lines;
}

void run_tape(TapeArguments arguments) {
  check_output_file("tape: --out", arguments.out, {kTapePageBeginning});
  check_output_file("tape: --dot", arguments.dot, {kTapeGraphBeginning});
  check_output_file("tape: --svg", arguments.svg, {kSvgBeginning});
  const bool small = arguments.config.empty();
  if (arguments.dtype.empty()) arguments.dtype = small ? "f64" : "f32";
  arguments.options.dtype = dtype_option("tape", arguments.dtype);
  const RunConfig config = config_of(arguments);
  // For tensors of a few numbers, waking another thread costs more than the work.
  Runtime runtime(parse_device(arguments.device), small && arguments.threads == 0 ? 1 : arguments.threads,
                  config.training.seed);
  WorkProgress progress("comparing gradients with differences", "numbers");
  const TapeRecording recording = record_model(config, arguments.options, runtime, progress.watch());
  progress.end();
  const std::string written = write_files(arguments, recording);
  if (arguments.json) return print_json(json_of(recording));
  print_report(written.empty() ? recording.table : written);
}

}  // namespace

Command* add_tape_command(Command& program) {
  Command* command = program.add_subcommand("tape", "show what autograd records of one step, as a page or a drawing");
  const auto arguments = std::make_shared<TapeArguments>();
  Option* config = command->add_option("--config", arguments->config,
                                       "TOML file of the run, or a name of engram configs [a model of a few numbers]");
  command->add_option("--family", arguments->family, "which small model: " + choices_text<ModelFamily>())
      ->suggest(words_of<ModelFamily>())
      ->capture_default_str()
      ->excludes(config);
  command->add_key_settings(arguments->overrides, "override keys of the config: section.key=value");
  command->add_option("--vocab", arguments->vocabulary, "symbols of the vocabulary, instead of the config's")
      ->positive();
  command->add_option("--block", arguments->block, "tokens of each stream, instead of the config's training.block")
      ->positive();
  command->add_option("--batch", arguments->batch, "streams [training.batch over training.split, one piece]")
      ->positive();
  command->add_option("--dtype", arguments->dtype, "f32 or f64 [f32 of a config, f64 of the small model]")
      ->suggest({"f32", "f64"});
  command
      ->add_option("--numbers", arguments->options.most_numbers,
                   "values and gradients are shown of tensors with at most so many numbers")
      ->non_negative()
      ->capture_default_str();
  command
      ->add_option(
          "--differences", arguments->options.differences,
          "f64: at most so many numbers of those gradients are compared with differences of the loss, for each "
          "of which the step runs forward twice; 0: none")
      ->non_negative()
      ->capture_default_str();
  command->add_option("--out", arguments->out, "write a page that is stepped through, which any browser opens")
      ->value_name("FILE");
  command->add_option("--dot", arguments->dot, "write a drawing for Graphviz")->value_name("FILE");
  command->add_option("--svg", arguments->svg, "write the drawing as SVG, by Graphviz's dot")->value_name("FILE");
  command->add_flag("--json", arguments->json, "print one JSON object with everything that was recorded");
  add_device_option(*command, arguments->device);
  add_threads_option(*command, arguments->threads, "threads of the host; 0: all, of the small model 1");
  command->footer(
      "Without --out, --dot, --svg and --json it prints the operations as a table. Weights and tokens are random, and "
      "nothing is updated.");
  command->callback([arguments] { run_tape(*arguments); });
  return command;
}

}  // namespace engram

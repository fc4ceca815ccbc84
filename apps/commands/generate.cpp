#include "apps/commands/commands.hpp"

#include <unistd.h>

#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "apps/commands/generate_context.hpp"
#include "apps/commands/model_arguments.hpp"
#include "apps/commands/output.hpp"
#include "apps/run/generation/text_writer.hpp"
#include "apps/run/generation/writing_session.hpp"
#include "apps/terminal/line_reader.hpp"
#include "apps/terminal/session_signals.hpp"
#include "apps/terminal/signals.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct GenerateArguments {
  ModelArguments model;
  std::string prompt;
  ContextArguments context;
  std::string oov = "error";  ///< for words of the prompt
  std::string join;           ///< empty: as the model's data say
  WritingOptions writing;
};

/// One text, which `write` gives piece by piece.
void print_text(const std::function<void(const TextWriter::Show&)>& write) {
  char last = '\n';
  write([&last](std::string_view piece) {
    print(piece);
    if (!piece.empty()) last = piece.back();
  });
  // The shell's prompt would stand behind the text. A file or pipe gets the text and nothing else.
  if (last != '\n' && ::isatty(STDOUT_FILENO) == 1) print("\n");
}

/// A session with whoever sits at the terminal.
void run_session(TextWriter& writer, const TrainedModel& trained, const WritingOptions& options) {
  SessionSignals signals;
  const std::unique_ptr<LineReader> lines = terminal_lines(signals);
  print_report(text(trained.path().string(), ", step ", trained.step(),
                    "\nType a beginning, and the model writes on. :help lists commands; Ctrl-D ends.\n"));
  WritingSession(writer, *lines, options, print, [&signals] { return signals.stop(); }).run();
  if (signals.ended() != 0) throw Interrupted("the session was ended by a signal");
}

void run_generate(const Command& command, const GenerateArguments& arguments) {
  arguments.writing.sampling.check();
  const bool has_context = arguments.context.given();
  const auto unseen = parse_named<data::UnseenWords>("words: --oov", arguments.oov);
  std::optional<data::WordJoin> join;
  if (!arguments.join.empty()) join = parse_named<data::WordJoin>("generate: --join", arguments.join);
  WorkProgress progress(text("reading '", arguments.model.run, "'"));
  OpenedModel opened(arguments.model, "generate");
  TextWriter writer(opened.trained, unseen, join);
  progress.end();
  const WritingOptions& writing = arguments.writing;
  if (has_context)
    return print_text([&](const auto& show) { arguments.context.write(opened, writer, unseen, writing, show); });
  if (command.count("--prompt") == 0) {
    const bool asks = ::isatty(STDIN_FILENO) == 1;
    if (asks && ::isatty(STDOUT_FILENO) == 1) return run_session(writer, opened.trained, writing);
    StreamLines lines(std::cin);
    if (!asks && write_for_lines(writer, lines, writing, print) > 0) return;
  }
  print_text([&](const auto& show) {
    // What the model has read of it, words joined as those are that it writes.
    show(writer.read(arguments.prompt, "the prompt"));
    writer.write(writing.length, writing.sampling, show);
  });
}

}  // namespace

Command* add_generate_command(Command& program) {
  Command* command = program.add_subcommand("generate", "let a trained model write on");
  const auto arguments = std::make_shared<GenerateArguments>();
  arguments->model.add_run(*command);
  command->add_option("--prompt", arguments->prompt,
                      "the beginning, printed too [none: lines that are typed or piped, see below]");
  arguments->context.add_to(*command);
  command
      ->add_option("--oov", arguments->oov,
                   "what becomes of words that the model does not know: error, or unk: <unk>, in articles UNK, as "
                   "prepare has it")
      ->suggest({"error", "unk"})
      ->capture_default_str();
  command
      ->add_option("--join", arguments->join,
                   "how words are written: spaces (as they are read), wikitext, penn or moses [as the data say]")
      ->suggest({"spaces", "wikitext", "penn", "moses"});
  command->add_option("--length", arguments->writing.length, "characters, words or subwords to write")
      ->non_negative()
      ->capture_default_str();
  SamplingOptions& sampling = arguments->writing.sampling;
  command
      ->add_option("--temperature", sampling.temperature,
                   "below 1: likelier tokens more often; 0: always the likeliest")
      ->capture_default_str();
  command->add_option("--top-k", sampling.top_k, "only the k likeliest tokens; 0: all")->capture_default_str();
  command->add_option("--top-p", sampling.top_p, "only the likeliest tokens whose probabilities together reach p")
      ->capture_default_str();
  command->add_option("--seed", sampling.seed, "the same seed writes the same text")->capture_default_str();
  arguments->model.add_options(*command);
  command->footer(
      "--data and --prompt-file let the model read a context first. With none of them and without --prompt, on a "
      "terminal, a session begins: type a beginning, and the model writes on; :help lists its "
      "commands. Without a terminal at stdin, every line that comes is a beginning of a text of its own. Where no line "
      "comes (/dev/null, an empty file, or a terminal while stdout is none), and with --prompt \"\", one text is "
      "written from the start of a line.");
  command->callback([command, arguments] { run_generate(*command, *arguments); });
  return command;
}

}  // namespace engram

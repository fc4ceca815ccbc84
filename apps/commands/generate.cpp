#include "apps/commands/generate.hpp"

#include <unistd.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apps/commands/output.hpp"
#include "apps/commands/shared_options.hpp"
#include "apps/data/text_tokens.hpp"
#include "apps/data/utf8.hpp"
#include "apps/generation/token_sampler.hpp"
#include "apps/generation/token_stream.hpp"
#include "apps/training/trained_model.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

struct GenerateArguments {
  std::string run;
  std::string prompt;
  std::int64_t length = 400;  ///< tokens
  std::string oov = "error";  ///< for words of the prompt
  SamplingOptions sampling;
  bool best = false;
  std::string device = "cpu";
  int threads = 0;
};

/// What a text begins after.
std::int32_t start_token(const data::TextReading& reading) {
  const std::int32_t token = data::text_start_token(reading);
  if (token < 0)
    throw UsageError(
        "generate: without a prompt the text begins after a newline, and the model knows none\n  --prompt TEXT gives a "
        "beginning");
  return token;
}

void run_generate(const GenerateArguments& arguments) {
  arguments.sampling.check();
  Runtime runtime(parse_device(arguments.device), arguments.threads);
  TrainedModel trained(arguments.run, arguments.best ? CheckpointKind::best : CheckpointKind::newest, runtime);
  const data::Vocabulary& vocabulary = trained.vocabulary();
  const data::TextReading reading = trained.reading(data::parse_unseen(arguments.oov));
  std::vector<std::int32_t> prompt = data::text_tokens(arguments.prompt, reading, "generate", "the prompt");
  // Words are shown as the model reads them; in a text of characters that is the prompt itself.
  const std::string beginning = data::shown_text(prompt, reading);
  if (prompt.empty()) prompt.push_back(start_token(reading));

  TokenStream stream(trained.model(), runtime, trained.dtype(), TokenStream::window_of(trained.config()));
  TokenSampler sampler(arguments.sampling);
  // A character may be of several subwords, and models may write half of one; bytes of characters stay as they are.
  data::Utf8Pieces characters;
  const bool whole = vocabulary.kind() == data::TokenKind::subword;
  char last = '\n';
  const auto put = [&last](const std::string& bytes) {
    print(bytes);
    if (!bytes.empty()) last = bytes.back();
  };
  const auto show = [&](const std::string& bytes) { put(whole ? characters.add(bytes) : bytes); };
  show(beginning);
  std::span<const double> logits = stream.append(prompt);
  std::int32_t before = prompt.back();
  for (std::int64_t position = 0; position < arguments.length; ++position) {
    const std::array<std::int32_t, 1> token{sampler.pick(logits, static_cast<std::uint64_t>(position))};
    show(vocabulary.decode(token, std::exchange(before, token[0])));
    if (position + 1 < arguments.length) logits = stream.append(token);
  }
  put(characters.finish());
  // The shell's prompt would stand behind the text. A file or pipe gets the text and nothing else.
  if (last != '\n' && ::isatty(STDOUT_FILENO) == 1) print("\n");
}

}  // namespace

Command* add_generate_command(Command& program) {
  Command* command = program.add_subcommand("generate", "let a trained model write on");
  const auto arguments = std::make_shared<GenerateArguments>();
  command->add_option("run", arguments->run, "folder of a run, or a checkpoint file")->required();
  command->add_option("--prompt", arguments->prompt, "the beginning, printed too [none: the start of a line]");
  command
      ->add_option("--oov", arguments->oov,
                   "what becomes of words that the model does not know: error, or unk: <unk>, in articles UNK, as "
                   "prepare has it")
      ->capture_default_str();
  command->add_option("--length", arguments->length, "characters, words or subwords to write")
      ->non_negative()
      ->capture_default_str();
  command
      ->add_option("--temperature", arguments->sampling.temperature,
                   "below 1: likelier tokens more often; 0: always the likeliest")
      ->capture_default_str();
  command->add_option("--top-k", arguments->sampling.top_k, "only the k likeliest tokens; 0: all")
      ->capture_default_str();
  command
      ->add_option("--top-p", arguments->sampling.top_p,
                   "only the likeliest tokens whose probabilities together reach p")
      ->capture_default_str();
  command->add_option("--seed", arguments->sampling.seed, "the same seed writes the same text")->capture_default_str();
  command->add_flag("--best", arguments->best, "the run's best checkpoint instead of the newest");
  add_device_option(*command, arguments->device);
  add_threads_option(*command, arguments->threads);
  command->callback([arguments] { run_generate(*arguments); });
  return command;
}

}  // namespace engram

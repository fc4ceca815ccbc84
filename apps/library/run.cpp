#include "apps/library/run.hpp"

#include <algorithm>
#include <utility>

#include "apps/data/files/token_view.hpp"
#include "apps/data/vocabulary/text_tokens.hpp"
#include "apps/run/evaluation/split_evaluation.hpp"
#include "apps/run/generation/text_writer.hpp"
#include "apps/run/generation/token_stream.hpp"
#include "apps/run/model/runtime.hpp"
#include "apps/run/model/trained_model.hpp"
#include "core/error.hpp"

namespace engram {

struct Run::Opened {
  Opened(const std::filesystem::path& run_or_checkpoint, const RunOptions& options)
      : runtime(options.device, options.threads),
        trained(run_or_checkpoint, options.checkpoint, runtime, options.dtype),
        unseen(options.unknown_words ? data::UnseenWords::unk : data::UnseenWords::error) {}

  data::TextReading reading() const {
    data::TextReading reading = trained.reading(unseen);
    reading.unseen_option = "RunOptions::unknown_words";
    return reading;
  }

  Runtime runtime;  // before the model, which it outlives
  TrainedModel trained;
  data::UnseenWords unseen;
};

Run::Run(std::unique_ptr<Opened> opened) : opened_(std::move(opened)) {}
Run::Run(Run&&) noexcept = default;
Run& Run::operator=(Run&&) noexcept = default;
Run::~Run() = default;

Run Run::open(const std::filesystem::path& run_or_checkpoint, const RunOptions& options) {
  return Run(std::make_unique<Opened>(run_or_checkpoint, options));
}

const std::filesystem::path& Run::checkpoint() const { return opened_->trained.path(); }
std::int64_t Run::step() const { return opened_->trained.step(); }
std::int64_t Run::vocabulary_size() const { return opened_->trained.vocabulary().size(); }
Backend& Run::backend() { return opened_->runtime.backend(); }

std::vector<std::int32_t> Run::tokens(const std::string& text) const {
  return data::text_tokens(text, opened_->reading(), "run", "the text");
}

std::string Run::text(std::span<const std::int32_t> tokens) const {
  return opened_->trained.vocabulary().decode(tokens);
}

Score Run::score(std::span<const std::int32_t> tokens) {
  if (tokens.size() < 2)
    throw UsageError(engram::text("run: a text that is scored must have two tokens or more, got ", tokens.size()));
  const std::int64_t size = vocabulary_size();
  const auto wrong = std::ranges::find_if(tokens, [size](std::int32_t id) { return id < 0 || id >= size; });
  if (wrong != tokens.end())
    throw UsageError(
        engram::text("run: ids must be from 0 to ", size - 1, ", got ", *wrong, " at ", wrong - tokens.begin()));
  const data::ArticleSplit all{data::TokenView(tokens)};
  const Evaluation found = evaluate_split(opened_->trained, all, {.exact = true}).result;
  return {found.nll_sum, found.scored};
}

Score Run::score(const std::string& text) { return score(tokens(text)); }

void Run::generate(const std::string& prompt, const GenerateOptions& options, const Show& show) {
  options.sampling.check();
  if (options.length < 0)
    throw UsageError(engram::text("run: the length that is written must be 0 or more tokens, got ", options.length));
  const TrainedModel& trained = opened_->trained;
  TextWriter writer(opened_->trained.placed(), opened_->reading(), TokenStream::window_of(trained.config()),
                    {.command = "run", .prompt = "the text of a prompt"});
  writer.read(prompt, "the prompt");
  writer.write(options.length, options.sampling, show);
}

std::string Run::generate(const std::string& prompt, const GenerateOptions& options) {
  std::string written;
  generate(prompt, options, [&written](std::string_view piece) { written += piece; });
  return written;
}

std::vector<std::string> Run::tensor_names() const {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : opened_->trained.store().parameters()) names.push_back(name);
  return names;
}

Tensor Run::tensor(std::string_view name) const {
  const Parameter* parameter = opened_->trained.store().find(name);
  if (parameter == nullptr)
    throw UsageError(engram::text("run: '", checkpoint().string(), "' has no tensor named '", name, "'"));
  return parameter->value();
}

}  // namespace engram

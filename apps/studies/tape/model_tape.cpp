#include "apps/studies/tape/model_tape.hpp"

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "apps/run/cost/cluster_shares.hpp"
#include "apps/run/model/frozen_parameters.hpp"
#include "apps/run/training/trainer.hpp"
#include "apps/tape/tape_differences.hpp"
#include "apps/tape/tape_recorder.hpp"
#include "autograd/parameter_store.hpp"
#include "nn/models/model_options.hpp"
#include "nn/visitor.hpp"

namespace engram {
namespace {

/// The same on every machine; `which` numbers the sequences. Of a vocabulary in clusters, words by their frequencies.
std::vector<std::int32_t> tape_tokens(std::int64_t count, const ModelOptions& model, std::uint32_t which) {
  if (!model.cutoffs().empty()) return ranked_tokens(count, model.vocabulary(), which);
  constexpr std::uint32_t kHashMultiplier = 2654435761;  // 2^32 over the golden ratio (Knuth)
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const std::uint32_t mixed = static_cast<std::uint32_t>(i + 1 + which * 0x10001) * kHashMultiplier;
    ids[i] = static_cast<std::int32_t>((mixed >> 7) % static_cast<std::uint32_t>(model.vocabulary()));
  }
  return ids;
}

/// The first piece of a batch is a batch of its own.
RunConfig one_piece(RunConfig config) {
  if (config.model.vocabulary() < 1)
    throw UsageError("tape: the configuration takes its vocabulary from the data\n  --vocab N gives one");
  config.training.batch /= config.training.split;
  config.training.split = 1;
  return config;
}

/// A step that can be run again and again.
class RepeatedStep {
 public:
  RepeatedStep(const RunConfig& config, DType dtype, Runtime& runtime)
      : config_(one_piece(config)), runtime_(runtime), model_(make_model(config_.model)) {
    config_.model.check_dtype(dtype, "tape");
    collect(*model_, store_);
    freeze_parameters(store_, config_.training.freeze);
    store_.place(runtime.backend(), dtype, config_.training.seed, {});
    model_->refresh(runtime.backend());
    trainer_ = std::make_unique<Trainer>(config_, *model_, store_, runtime);
    trainer_->keep_scopes();
    const TrainingOptions& training = config_.training;
    block_.rows = static_cast<int>(training.batch);
    block_.length = static_cast<int>(training.block + training.extension);
    block_.context = block_.fed_again = static_cast<int>(training.extension);
    block_.scored_count = training.batch * training.block;
    block_.scored.assign(static_cast<std::size_t>(block_.scored_count), 1);
    block_.inputs = tape_tokens(training.batch * block_.length, config_.model, 0);
    block_.targets = tape_tokens(block_.scored_count, config_.model, 1);
    block_.zero_caches = true;
  }

  void run(TapeObserver& observer) {
    runtime_.step().observe(&observer);
    try {
      trainer_->accumulate(block_);
    } catch (...) {
      runtime_.step().observe(nullptr);
      trainer_->undo();
      throw;
    }
    runtime_.step().observe(nullptr);
  }

  std::string about(DType dtype) const {
    const TrainingOptions& training = config_.training;
    return fmt::format("{} parameters in {}, {} x {} tokens, random weights", store_.count(), name_of(dtype),
                       training.batch, training.block);
  }
  std::string title() const {
    const ModelOptions& model = config_.model;
    return fmt::format("One step of {}: {} {} of width {}", name_of(model.family), model.layers(),
                       model.layers() == 1 ? "layer" : "layers", model.width());
  }

 private:
  RunConfig config_;
  Runtime& runtime_;
  std::unique_ptr<LanguageModel> model_;
  ParameterStore store_;
  std::unique_ptr<Trainer> trainer_;
  data::Block block_;
};

}  // namespace

TapeRecording record_model(const RunConfig& config, const ModelTapeOptions& options, Runtime& runtime,
                           const WorkWatch& watch) {
  RepeatedStep repeated(config, options.dtype, runtime);
  const TapeStep step = [&repeated](TapeObserver& observer) { repeated.run(observer); };
  // The first step waits for memory and for threads to begin.
  record_tape(step, 0);
  TapeRecording recording = record_tape(step, options.most_numbers);
  recording.title = repeated.title();
  recording.about = repeated.about(options.dtype);
  DifferenceOptions differences;
  differences.most = options.differences;
  differences.watch = watch;
  if (options.differences > 0) add_differences(recording, step, differences);
  return recording;
}

}  // namespace engram

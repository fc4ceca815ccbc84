#pragma once
/// Everything of a training run that changes while it runs and that a checkpoint holds: model, optimiser, readers,
/// caches, and what the reports are made from.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/data/blocks/article_reader.hpp"
#include "apps/data/blocks/batches.hpp"
#include "apps/data/blocks/evaluation_plan.hpp"
#include "apps/data/data_set.hpp"
#include "apps/run/config/run_config.hpp"
#include "apps/run/evaluation/evaluator.hpp"
#include "apps/run/model/runtime.hpp"
#include "apps/run/training/divergence.hpp"
#include "apps/run/training/plateau.hpp"
#include "apps/run/training/trainer.hpp"
#include "nn/models/language_model.hpp"
#include "nn/optim/weight_average.hpp"

namespace engram {

/// The configuration for this data: a vocabulary of 0 becomes the data's. Throws UsageError when it is another number.
RunConfig resolved_config(RunConfig config, const data::DataSet& data);

/// What a run takes its blocks from; articles, where the data know them, for models that know where texts begin.
/// Throws UsageError when the tokens are too few for a batch.
std::unique_ptr<data::BlockReader> make_reader(const RunConfig& config, const data::ArticleSplit& split);

class TrainingSession {
  std::vector<std::string> notes_;  // first: making the other members adds to them

 public:
  /// Step 0, with weights drawn from the seed. `config` must be resolved. The data and the runtime must outlive it.
  /// Throws UsageError when the training split is too short for a batch.
  TrainingSession(RunConfig config, const data::DataSet& data, Runtime& runtime, DType dtype);

  /// Reads the next block and trains on it. Throws Diverged, and OutOfMemory, after which all is as before the step.
  StepLosses step();
  /// The next short validation: some blocks of the split `valid`, going on where the last one stopped. On a plateau it
  /// begins the fine-tuning, if the schedule says so. `found` is told about every target, its place being that in the
  /// split, and `reads` what memories read.
  Evaluation validate(const TokenLoss& found = {}, const MemoryReads& reads = {});

  const RunConfig config;
  const data::DataSet& data;
  Runtime& runtime;
  ParameterStore store;  // before the model, whose parameters have their memory here

 private:
  const std::unique_ptr<LanguageModel> owned_model_;

 public:
  LanguageModel& model;
  Trainer trainer;

 private:
  const std::unique_ptr<data::BlockReader> owned_reader_;

 public:
  data::BlockReader& reader;
  data::ShortValidation validation;
  ModelPast validation_past;
  DivergenceWatch divergence{config.model.vocabulary()};
  PlateauWatch plateau;
  WeightAverage average{store};  ///< begun by `averaging`, where training.weight_average asks for it
  AveragingTrigger averaging;

  /// Does something with the weights that the model is judged by: the mean of the weights, as soon as there is one.
  void with_judged_weights(const std::function<void()>& use);

  /// The step that the run ends with, as far as is known: fine-tuning may begin earlier than planned.
  std::int64_t last_step() const { return trainer.finetune_after() + config.training.finetune_steps; }

  struct Best {
    double nll = 0;  ///< nats per token
    std::int64_t step = 0;
  };
  std::optional<Best> best;  ///< of the short validations

  /// Of the steps since the last report.
  struct Interval {
    double nll_sum = 0;  ///< of the steps' means
    std::int64_t steps = 0;
    double mean() const { return steps > 0 ? nll_sum / static_cast<double>(steps) : 0; }
  };
  Interval interval;

  /// What was adapted to the data and should be said: fewer rows in the validation, dropped tokens.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  data::ShortValidation make_validation();

  data::Block block_;
};

}  // namespace engram

#pragma once
/// Everything of a training run that changes while it runs and that a checkpoint holds: model, optimiser, readers,
/// caches, and what the reports are made from.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "apps/data/blocks/article_reader.hpp"
#include "apps/data/blocks/block_reader.hpp"
#include "apps/data/blocks/evaluation_plan.hpp"
#include "apps/data/data_set.hpp"
#include "apps/run/config/run_config.hpp"
#include "apps/run/evaluation/evaluator.hpp"
#include "apps/run/evaluation/work_share.hpp"
#include "apps/run/model/placed_model.hpp"
#include "apps/run/training/trainer.hpp"
#include "apps/run/training/training_watch.hpp"

namespace engram {

/// The configuration for this data: a vocabulary of 0 becomes the data's. Throws UsageError when it is another number.
RunConfig resolved_config(RunConfig config, const data::DataSet& data);

/// What a run takes its blocks from; articles, where the data know them, for models that know where texts begin.
/// Throws UsageError when the tokens are too few for a batch.
std::unique_ptr<data::BlockReader> make_reader(const RunConfig& config, const data::ArticleSplit& split);

class TrainingSession {
 public:
  /// Step 0, with weights drawn from the seed. `config` must be resolved. The data and the runtime must outlive it.
  /// Throws UsageError when the training split is too short for a batch.
  TrainingSession(RunConfig config, const data::DataSet& data, Runtime& runtime, DType dtype);

  /// Reads the next block and trains on it. Throws Diverged, and OutOfMemory, after which all is as before the step
  /// where there is one rank.
  StepLosses step();
  /// The next short validation: some blocks of the split `valid`, going on where the last one stopped, computed as
  /// with_judged_model() does it or, with training.validate_as_trained, as a step. On a plateau it
  /// begins the fine-tuning, if the schedule says so. Of what hooks.found is told, the place is that in the split.
  /// Collective, and returns the same on all ranks but for the seconds.
  Evaluation validate(const EvaluationHooks& hooks = {});

  /// Does something with the weights that the model is judged by: the mean of the weights, as soon as there is one.
  void with_judged_weights(const std::function<void()>& use);
  /// with_judged_weights(), computing as `engram evaluate` does it: f32 products and activations.
  void with_judged_model(const std::function<void()>& use);

  /// The step that the run ends with, as far as is known: fine-tuning may begin earlier than planned.
  std::int64_t last_step() const { return trainer.finetune_after() + config.training.finetune_steps; }
  PlacedModel placed() { return {*model, runtime, store.dtype()}; }

  /// JSON: what of other weights this training began with (json_of of a WeightTransfer); empty: nothing.
  std::string origin;
  /// What was adapted to the data and should be said: fewer rows in the validation, dropped tokens. First, as making
  /// other members adds to it.
  std::vector<std::string> notes;
  const RunConfig config;
  const data::DataSet& data;
  Runtime& runtime;
  ParameterStore store;  ///< before the model, whose parameters have their memory here
  const std::unique_ptr<LanguageModel> model;
  Trainer trainer;
  const std::unique_ptr<data::BlockReader> reader;
  data::ShortValidation validation;
  /// How the validation is cut: as training.split cuts a batch, so that ranks share it, where its rows can be; else
  /// every rank does all of it.
  const WorkShare validation_share;
  /// Of the pieces of the validation that this rank computes.
  std::vector<ModelPast> validation_pasts;
  TrainingWatch watch;

 private:
  data::Block block_;
};

}  // namespace engram

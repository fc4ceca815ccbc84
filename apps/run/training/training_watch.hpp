#pragma once
/// What a training run notices of its losses, and what it does then: report, end, fine-tune, lower its rate, average
/// its weights.

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/config/run_config.hpp"
#include "apps/run/evaluation/evaluator.hpp"
#include "apps/run/model/placed_model.hpp"
#include "apps/run/training/divergence.hpp"
#include "apps/run/training/plateau.hpp"
#include "apps/run/training/trainer.hpp"
#include "nn/optim/weight_average.hpp"

namespace engram {

/// How a run goes on, for watchers that are restored.
struct Continuation {
  bool same_data = true;            ///< otherwise losses do not compare
  bool resized = false;             ///< with another max_span
  std::vector<std::string>& notes;  ///< of what begins anew, a sentence each
};

/// Something that a run watches.
struct Watcher {
  std::function<void(const StepLosses& losses)> step = {};        ///< after every step; may be empty
  std::function<void(const Evaluation& result)> validation = {};  ///< after every short validation; may be empty
  std::function<void(nlohmann::json& state)> save;                ///< adds its members to a checkpoint's state
  /// Takes them back. Throws nlohmann::json::exception where they are not as they should be, or UsageError.
  std::function<void(const nlohmann::json& state, const Continuation& how)> restore;
};

class TrainingWatch {
 public:
  /// All that is given, or that `placed` refers to, must outlive this.
  TrainingWatch(const RunConfig& config, const PlacedModel& placed, ParameterStore& store, Trainer& trainer);
  TrainingWatch(const TrainingWatch&) = delete;
  TrainingWatch& operator=(const TrainingWatch&) = delete;

  /// What is done after a step, after a short validation, when the run is saved, and when it goes on: by every watcher.
  void step(const StepLosses& losses);
  void validation(const Evaluation& result);
  void save(nlohmann::json& state) const;
  void restore(const nlohmann::json& state, const Continuation& how);

  DivergenceWatch divergence;
  WeightAverage average;  ///< begun where validations stop to improve, if training.weight_average asks for it

  struct Best {
    double nll = 0;  ///< nats per token
    std::int64_t step = 0;
  };
  std::optional<Best> best;  ///< of the short validations

  /// The losses of the steps since the last report.
  struct Interval {
    double nll_sum = 0;  ///< of the steps' means
    std::int64_t steps = 0;
    double mean() const { return steps > 0 ? nll_sum / static_cast<double>(steps) : 0; }
  };
  Interval interval;

 private:
  PlateauWatch plateau_;
  AveragingTrigger averaging_;
  std::vector<Watcher> watchers_;
};

}  // namespace engram

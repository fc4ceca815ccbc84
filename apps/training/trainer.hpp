#pragma once
/// One optimiser step of a model: the order of things is that of the all-attention family's spec, section 5: clear the
/// gradients, forward and backward for every piece of the batch, rate, clip, update, clamp the spans.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "apps/config/run_config.hpp"
#include "apps/data/batches.hpp"
#include "apps/training/runtime.hpp"
#include "autograd/parameter_store.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "nn/models/all_attention.hpp"

namespace engram {

/// The loss is not finite or has grown for long. The weights of the last checkpoint are still good.
class Diverged : public Error {
 public:
  using Error::Error;
};

/// Of one step, in nats.
struct StepLosses {
  double nll = 0;        ///< mean over the block's scored targets
  double span_loss = 0;  ///< lambda S sum over layers of the mean zeta, before the update
};

class Trainer {
 public:
  /// The store must be placed; all must outlive the trainer. Makes the optimiser's state and, for every piece of a
  /// batch, the caches.
  Trainer(const RunConfig& config, AllAttentionModel& model, ParameterStore& store, Runtime& runtime);

  /// One update. The block has training.batch rows of any length. Throws Diverged, before the update, when the loss is
  /// not finite.
  StepLosses step(const data::Block& block);
  /// The gradients of step() without the update.
  StepLosses accumulate(const data::Block& block);

  /// Updates so far.
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }
  /// The learning rate of the next update.
  double next_rate() const { return config_->schedule.at(steps_ + 1); }

  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  /// One for every piece of a batch, made by AllAttentionModel::hidden_past.
  std::vector<ModelPast>& pasts() { return pasts_; }
  const std::vector<ModelPast>& pasts() const { return pasts_; }

  /// Shows the tape of the first piece of the next step, between forward and backward; once.
  void view_tape(std::function<void(const Tape&)> view) { view_ = std::move(view); }
  /// Tapes keep scopes from now on, so that messages about backward passes say where they are.
  void keep_scopes() { keep_scopes_ = true; }

 private:
  StepLosses accumulate_piece(const data::Block& block, std::int64_t piece);

  const RunConfig* config_;
  AllAttentionModel* model_;
  ParameterStore* store_;
  Runtime* runtime_;
  std::unique_ptr<Optimizer> optimizer_;
  std::vector<ModelPast> pasts_;
  std::int64_t steps_ = 0;
  std::function<void(const Tape&)> view_;
  bool keep_scopes_ = false;
};

}  // namespace engram

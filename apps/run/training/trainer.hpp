#pragma once
/// One optimiser step of a model: the order of things is that of [all-attention 5]: clear the
/// gradients, forward and backward for every piece of the batch, rate, clip, update, clamp the spans.

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "apps/data/blocks/block_reader.hpp"
#include "apps/run/config/run_config.hpp"
#include "apps/run/model/block_tensors.hpp"
#include "apps/run/model/runtime.hpp"
#include "apps/run/training/bucket_sender.hpp"
#include "apps/run/training/piece_sums.hpp"
#include "apps/run/training/step_replay.hpp"
#include "autograd/parameter_store.hpp"
#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "nn/models/language_model.hpp"
#include "nn/optim/plateau_decay.hpp"

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
  double auxiliary = 0;  ///< LanguageModel::auxiliary_losses(), a mean as `nll` is
};

class Trainer {
 public:
  /// The store must be placed; all must outlive the trainer. Makes the optimiser's state and the caches of the pieces
  /// of a batch that this rank computes: rank r of R those from r P / R to before (r + 1) P / R. Throws UsageError when
  /// weights are to be averaged of a model with tables, and when several ranks cannot share the pieces: each must have
  /// 1, 2, 4, ... of them, so that sums over all pieces have the same bits for every number of ranks.
  Trainer(const RunConfig& config, LanguageModel& model, ParameterStore& store, Runtime& runtime);

  /// One update. The block has training.batch rows of any length, and a target that counts. Throws Diverged when the
  /// loss is not finite: before the update, on devices that work behind the host after it, because nothing waits for
  /// them inside a step. Throws OutOfMemory, after which undo() is due.
  StepLosses step(const data::Block& block);
  /// The gradients of step() without the update; those of rows are gone when it returns. With several ranks the part of
  /// the dense gradients that the rank would update is whole.
  StepLosses accumulate(const data::Block& block);
  /// After a step() that threw before its update: caches and running statistics are again as they were before it. Only
  /// where there is one rank.
  void undo();

  /// Of the steps of this trainer: how many the device repeated by itself.
  std::int64_t replayed() const { return replay_.replayed(); }
  /// How many were captured, to be replayed.
  std::int64_t captured() const { return replay_.captured(); }
  /// Gives back the memory of steps that it can repeat. Returns whether there were any.
  bool forget_replays() { return replay_.forget(); }
  /// Whether it may, where it can. The default is that it may.
  void allow_replay(bool allow) { may_replay_ = allow; }

  /// Updates so far.
  std::int64_t steps() const { return steps_; }
  void set_steps(std::int64_t steps) { steps_ = steps; }
  /// The learning rate of the next update.
  double next_rate() const { return config_->schedule.at(steps_ + 1, finetune_after_, plateau_decay_.share()); }
  /// What lowers the rate when the validation loss stops falling, where the schedule says so.
  PlateauDecay& plateau_decay() { return plateau_decay_; }
  /// Fine-tuning begins after so many updates, schedule.steps unless said otherwise.
  std::int64_t finetune_after() const { return finetune_after_; }
  void finetune_after(std::int64_t updates) { finetune_after_ = updates; }

  Optimizer& optimizer() { return *optimizer_; }
  const Optimizer& optimizer() const { return *optimizer_; }
  /// One for every piece of a batch that this rank computes, made by LanguageModel::training_past.
  std::vector<ModelPast>& pasts() { return pasts_; }
  /// The first of those pieces.
  std::int64_t first_piece() const { return first_piece_; }
  /// What gradients cost on their way to other ranks while backward runs; nothing where there are none.
  ExchangeCosts exchange_costs() const { return sender_ ? sender_->costs() : ExchangeCosts(); }
  /// What updates gather from other ranks, and wait for.
  ExchangeCosts gather_costs() const { return optimizer_->gather_costs(); }
  const std::vector<ModelPast>& pasts() const { return pasts_; }

  /// Shows the tape of the first piece of the next step, between forward and backward; once.
  void view_tape(std::function<void(const Tape&)> view) { view_ = std::move(view); }
  /// Tapes keep scopes from now on, so that messages about backward passes say where they are.
  void keep_scopes() { keep_scopes_ = true; }

 private:
  void begin(const data::Block& block);
  void accumulate_pieces();
  void accumulate_piece(std::int64_t piece);
  void finish_sums();
  void finish_buffers();
  void restore_buffers();
  void update();
  void end_step();
  StepLosses read_losses();
  void check(const StepLosses& losses) const;
  StepReplay::Key replay_key();
  void for_each_past(const std::function<void(StatePast&)>& found);

  const RunConfig* config_;
  LanguageModel* model_;
  ParameterStore* store_;
  Runtime* runtime_;
  std::unique_ptr<Optimizer> optimizer_;
  std::int64_t first_piece_ = 0;
  std::vector<ModelPast> pasts_;
  BlockTensors tokens_;
  Tensor losses_;                     // of every piece: of the spans, of the tokens, auxiliary ones
  std::vector<StepScalars> scalars_;  // of every piece, and of the update
  std::vector<std::int64_t> valid_before_;
  /// Running statistics of the model, and what they were before the step.
  struct KeptBuffer {
    Tensor now, before;
  };
  std::vector<KeptBuffer> buffers_;
  PieceSums sums_;                        // of the groups' gradients, then of the buffers
  std::unique_ptr<BucketSender> sender_;  // where there are other ranks
  std::int64_t scored_ = 0;               // targets of the block that count
  /// The share of the training that is done.
  double progress() const { return static_cast<double>(steps_) / static_cast<double>(config_->total_steps()); }
  /// Gradients are those of the mean loss of a token times this.
  double loss_factor() const {
    return config_->training.loss_scale == LossScale::mean ? 1.0 : static_cast<double>(tokens_.scored());
  }
  bool begun_ = false;  // the present step: what it was before is known
  StepReplay replay_;
  std::int64_t steps_ = 0;
  std::int64_t finetune_after_ = config_->schedule.steps;
  PlateauDecay plateau_decay_{config_->schedule};
  std::function<void(const Tape&)> view_;
  bool keep_scopes_ = false;
  bool may_replay_ = true;
};

}  // namespace engram

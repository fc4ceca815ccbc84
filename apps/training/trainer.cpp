#include "apps/training/trainer.hpp"

#include <cmath>
#include <utility>

#include "apps/training/block_tensors.hpp"
#include "autograd/functions/cross_entropy.hpp"
#include "core/kernels/fill.hpp"

namespace engram {
namespace {

double read_number(Backend& backend, const Tensor& tensor) {
  return dispatch_float(tensor.dtype(), "trainer", [&]<class T>() {
    T number{};
    backend.copy(&number, tensor.raw(), sizeof number, CopyKind::device_to_host);
    return static_cast<double>(number);
  });
}

}  // namespace

Trainer::Trainer(const RunConfig& config, AllAttentionModel& model, ParameterStore& store, Runtime& runtime)
    : config_(&config), model_(&model), store_(&store), runtime_(&runtime) {
  runtime.step().set_products(config.training.products);
  runtime.step().set_activations(config.training.activations);
  if (config.training.activations == ActivationPrecision::bf16) store.keep_rounded(runtime.step());
  optimizer_ = make_optimizer(config.optimizer, store, runtime.step());
  const std::int64_t streams = config.training.batch / config.training.split;
  const DType dtype = activation_dtype(config.training.activations, store.dtype());
  for (std::int64_t piece = 0; piece < config.training.split; ++piece)
    pasts_.push_back(model.hidden_past(runtime.backend(), runtime.memory(), streams, dtype));
}

StepLosses Trainer::step(const data::Block& block) {
  const StepLosses losses = accumulate(block);
  if (!std::isfinite(losses.nll))
    throw Diverged(text("training: the loss of step ", steps_ + 1, " is not finite (", losses.nll, ")"));
  Step& step = runtime_->step();
  step.begin({.step = static_cast<std::uint64_t>(steps_), .learning_rate = static_cast<float>(next_rate())});
  optimizer_->update(step);
  model_->refresh_spans(runtime_->backend());
  runtime_->arena().end_step();
  ++steps_;
  return losses;
}

StepLosses Trainer::accumulate(const data::Block& block) {
  if (block.rows != config_->training.batch)
    throw Error(text("trainer: a block must have the ", config_->training.batch, " rows of a batch, got ", block.rows));
  if (block.zero_caches)
    for (ModelPast& past : pasts_)
      for (const auto& layer : past) layer->reset();
  store_->zero_gradients(runtime_->step());
  StepLosses total;
  for (std::int64_t piece = 0; piece < config_->training.split; ++piece) {
    const StepLosses losses = accumulate_piece(block, piece);
    total.nll += losses.nll;
    total.span_loss += losses.span_loss;
  }
  runtime_->arena().end_step();
  return total;
}

StepLosses Trainer::accumulate_piece(const data::Block& block, std::int64_t piece) {
  Step& step = runtime_->step();
  Backend& backend = runtime_->backend();
  const TrainingOptions& options = config_->training;
  step.begin({.step = static_cast<std::uint64_t>(steps_),
              .piece = static_cast<std::uint32_t>(piece),
              .learning_rate = static_cast<float>(next_rate())});
  const std::int64_t rows = options.batch / options.split;
  const auto [inputs, targets] = block_tensors(step, block, piece * rows, rows);

  Tape tape(step);
  tape.keep_scopes(keep_scopes_ || view_);
  // One mean over the whole batch, whatever pieces it is computed in.
  Tensor row_weight = step.empty({rows * block.length}, store_->dtype());
  kernels::fill(step, row_weight, 1.0 / static_cast<double>(options.batch * block.length));
  Variable logits = model_->forward(tape, inputs, pasts_[static_cast<std::size_t>(piece)]);
  const Variable loss = cross_entropy(std::move(logits), targets, row_weight).loss;
  const Variable penalty = model_->span_penalty(tape, options.span_loss, 1.0 / static_cast<double>(options.split));
  if (view_) std::exchange(view_, nullptr)(tape);
  if (penalty)
    tape.backward({loss, penalty});
  else
    tape.backward({loss});
  return {read_number(backend, loss.value()), penalty ? read_number(backend, penalty.value()) : 0.0};
}

}  // namespace engram

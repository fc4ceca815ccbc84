#include "apps/run/training/trainer.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "autograd/rank_exchange.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/fill.hpp"
#include "nn/optim/make_optimizer.hpp"

namespace engram {
namespace {

OptimizerOptions with_schedule(OptimizerOptions options, const Schedule& schedule) {
  options.tables.schedule_rate = schedule.highest();
  return options;
}

/// The rate that parameters are updated with: in f32, what f32 holds of it.
double stored_rate(double rate, DType parameters) {
  return parameters == DType::f64 ? rate : static_cast<double>(static_cast<float>(rate));
}

/// Of a table of losses, a row for every piece, this rank knows those of its own pieces: it gets the others.
template <class T>
void gather_rows(std::pmr::vector<T>& losses, Communicator& ranks) {
  const std::size_t own = losses.size() / static_cast<std::size_t>(ranks.size());
  const std::vector<T> mine(losses.begin() + static_cast<std::ptrdiff_t>(own) * ranks.rank(),
                            losses.begin() + static_cast<std::ptrdiff_t>(own) * (ranks.rank() + 1));
  ranks.gather_host(mine.data(), own * sizeof(T), losses.data());
}

/// How many pieces of a batch each rank has.
std::int64_t own_pieces(const TrainingOptions& options, const Communicator& ranks) {
  const std::int64_t own = options.split / ranks.size();
  const bool shared = own * ranks.size() == options.split && std::has_single_bit(static_cast<std::uint64_t>(own));
  if (!ranks.alone() && !shared)
    throw UsageError(text("training: training.split must be 1, 2, 4, 8, ... times the ", ranks.size(), " ranks, got ",
                          options.split));
  return own;
}

}  // namespace

Trainer::Trainer(const RunConfig& config, LanguageModel& model, ParameterStore& store, Runtime& runtime)
    : config_(&config), model_(&model), store_(&store), runtime_(&runtime), replay_(runtime.backend()) {
  if (config.training.weight_average && !store.tables().empty())
    throw UsageError(text("training: training.weight_average must be false for a model with tables, got true and ",
                          store.tables().front()->name(), "\n  a mean of all rows would cost what lookups save"));
  runtime.step().set_products(config.training.products);
  runtime.step().set_activations(config.training.activations);
  if (config.training.activations == ActivationPrecision::bf16) store.keep_rounded(runtime.step());
  keep_scopes_ = runtime.backend().profiler() != nullptr;
  optimizer_ = make_optimizer(with_schedule(config.optimizer, config.schedule), store, runtime.step(),
                              {.ranks = &runtime.ranks()});
  const std::int64_t pieces = config.training.split, own = own_pieces(config.training, runtime.ranks());
  first_piece_ = runtime.ranks().rank() * own;
  const DType dtype = activation_dtype(config.training.activations, store.dtype());
  for (std::int64_t piece = 0; piece < own; ++piece)
    pasts_.push_back(model.training_past(runtime.backend(), runtime.memory(), config.training.batch / pieces, dtype));
  for (const auto& [name, parameter] : store.parameters())
    if (parameter->gradient_kind() == Gradient::none && !parameter->frozen())
      buffers_.push_back({parameter->value(), Tensor(parameter->value().shape(), parameter->value().dtype(),
                                                     runtime.backend().device(), runtime.memory())});
  std::vector<Tensor> summed;
  for (const ParameterGroup& group : store.groups()) summed.push_back(group.gradients);
  for (const KeptBuffer& buffer : buffers_) summed.push_back(buffer.now);
  sums_ = PieceSums(summed, own, runtime.memory());
  if (!runtime.ranks().alone())
    sender_ = std::make_unique<BucketSender>(store, optimizer_->buckets(), sums_, runtime.ranks());
  losses_ = Tensor({pieces, 1 + model.tokens().most_losses() + model.auxiliary_count(0)}, store.dtype(),
                   runtime.backend().device(), runtime.memory());
  scalars_.resize(static_cast<std::size_t>(pieces) + 1);
}

StepLosses Trainer::step(const data::Block& block) {
  begin(block);
  StepLosses losses;
  if (runtime_->backend().works_behind()) {
    const auto work = [this] {
      accumulate_pieces();
      update();
    };
    if (!may_replay_ || view_ || keep_scopes_ || runtime_->step().observer() != nullptr)
      work();
    else
      switch (replay_.run(replay_key(), work)) {
        case StepRun::handed_over:
          break;
        case StepRun::replayed:
          for_each_past([this](StatePast& past) { past.replayed(tokens_.remembered()); });
          break;
        case StepRun::only_recorded:  // nor has another rank got anything of it
          undo();
          end_step();
          begin(block);
          work();
      }
    losses = read_losses();
    check(losses);
  } else {
    accumulate_pieces();
    losses = read_losses();
    check(losses);
    update();
  }
  model_->refresh(runtime_->backend());
  end_step();
  ++steps_;
  return losses;
}

StepLosses Trainer::accumulate(const data::Block& block) {
  begin(block);
  accumulate_pieces();
  end_step();
  return read_losses();
}

void Trainer::end_step() {
  store_->clear_row_gradients();
  runtime_->arena().end_step();
}

void Trainer::begin(const data::Block& block) {
  if (block.rows != config_->training.batch)
    throw Error(text("trainer: a block must have the ", config_->training.batch, " rows of a batch, got ", block.rows));
  if (block.scored_count < 1) throw Error("trainer: a block must have a target that counts, got none");
  scored_ = block.scored_count;
  begun_ = false;
  valid_before_.clear();
  if (block.zero_caches)
    for (ModelPast& past : pasts_)
      for (const auto& layer : past) layer->reset();
  for_each_past([this](const StatePast& past) { valid_before_.push_back(past.valid()); });
  for (const KeptBuffer& buffer : buffers_)
    runtime_->backend().copy(buffer.before.raw(), buffer.now.raw(), buffer.now.bytes(), CopyKind::device_to_device);
  begun_ = true;
  const StepScalars of_step{.step = static_cast<std::uint64_t>(steps_),
                            .piece = 0,
                            .learning_rate = stored_rate(next_rate(), store_->dtype())};
  std::ranges::fill(scalars_, of_step);
  for (std::size_t piece = 0; piece + 1 < scalars_.size(); ++piece)
    scalars_[piece].piece = static_cast<std::uint32_t>(piece);
  runtime_->step().write_scalars(scalars_);
  tokens_.write(tokens_of(block), config_->training.split, model_->tokens().clusters(), runtime_->backend(),
                runtime_->memory(), store_->dtype());
  for_each_past([this](StatePast& past) { past.settle(tokens_.remembered()); });
}

void Trainer::accumulate_pieces() {
  Step& step = runtime_->step();
  store_->clear_row_gradients();
  kernels::fill(step, losses_, 0);
  sums_.begin();
  const auto own = static_cast<std::int64_t>(pasts_.size());
  for (std::int64_t i = 0; i < own; ++i) {
    store_->zero_dense_gradients(step);
    if (config_->training.split > 1) restore_buffers();  // all pieces begin with the same ones
    accumulate_piece(first_piece_ + i);
    if (i + 1 < own) sums_.keep(step);
  }
  finish_sums();
  // Gradients of rows are memory of the step, which the update needs.
  if (store_->tables().empty()) runtime_->arena().end_step();
}

void Trainer::accumulate_piece(std::int64_t piece) {
  Step& step = runtime_->step();
  step.begin_piece(static_cast<std::size_t>(piece));
  const TrainingOptions& options = config_->training;
  const TokenBatch batch = tokens_.piece(piece);

  Tape tape(step);
  tape.keep_scopes(keep_scopes_ || view_);
  // One mean over the whole batch, whatever pieces it is computed in.
  const double row_weight = loss_factor() / static_cast<double>(scored_);
  ModelTrace trace(step.objects());
  trace.keep_states = model_->auxiliary_count(progress()) > 0;
  const Variable hidden = LanguageModel::scored(
      model_->hidden(tape, batch, pasts_[static_cast<std::size_t>(piece - first_piece_)], &trace), batch);
  std::pmr::vector<Variable> losses(step.objects());
  for (LossPart& part : model_->tokens().losses(hidden, batch, row_weight)) losses.push_back(std::move(part.loss));
  const auto of_tokens = std::ssize(losses);
  for (Variable& loss : model_->auxiliary_losses(trace, hidden, batch, row_weight, progress()))
    losses.push_back(std::move(loss));
  const Variable penalty = model_->penalty(trace, options.span_loss, 1.0 / static_cast<double>(options.split));
  if (penalty) losses.push_back(penalty);
  if (view_) std::exchange(view_, nullptr)(tape);
  if (sender_ && piece + 1 == first_piece_ + static_cast<std::int64_t>(pasts_.size())) {
    sender_->begin(step);
    // Lookups of tables are exchanges too, and where the ranks' tapes differ a bucket could be final before one of them
    // here and behind it there.
    if (store_->tables().empty()) tape.watch_backward(sender_.get());
  }
  std::pmr::vector<Variable> trained(step.objects());  // what is frozen may be all that a loss depends on
  for (const Variable& loss : losses)
    if (loss.requires_grad()) trained.push_back(loss);
  if (!trained.empty()) tape.backward(trained);
  trained.clear();
  // In each piece's row of losses_ the penalty comes first, then as many as tokens can have, then auxiliary ones;
  // losses that are not there stay 0.
  const std::int64_t row = piece * losses_.shape()[1];
  const auto keep = [&](const Variable& number, std::int64_t place) {
    const Tensor to = losses_.view({losses_.count()}).rows(row + place, row + place + 1);
    runtime_->backend().copy(to.raw(), number.value().raw(), to.bytes(), CopyKind::device_to_device);
  };
  if (penalty) {
    keep(losses.back(), 0);
    losses.pop_back();
  }
  const std::int64_t gap = model_->tokens().most_losses() - of_tokens;
  for (std::int64_t i = 0; i < std::ssize(losses); ++i)
    keep(losses[static_cast<std::size_t>(i)], i + 1 + (i < of_tokens ? 0 : gap));
}

void Trainer::finish_sums() {
  if (sender_)
    sender_->finish();
  else
    for (std::size_t group = 0; group < store_->groups().size(); ++group)
      sums_.finish(runtime_->step(), group, 0, store_->groups()[group].gradients.count());
  if (config_->training.split > 1) finish_buffers();
}

void Trainer::finish_buffers() {
  Step& step = runtime_->step();
  Communicator& ranks = runtime_->ranks();
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const Tensor now = buffers_[i].now.view({buffers_[i].now.count()});
    sums_.finish(step, store_->groups().size() + i, 0, now.count());
    if (!ranks.alone()) gather_sum(step, now, ranks);
    // Every piece made one update of what was there before the step: their mean is the step's.
    kernels::accumulate(step, now, 1.0 / static_cast<double>(config_->training.split), {now, Write::set});
  }
}

void Trainer::update() {
  runtime_->step().begin_piece(scalars_.size() - 1);
  optimizer_->update(runtime_->step());
}

StepLosses Trainer::read_losses() {
  return dispatch_float(losses_.dtype(), "trainer", [&]<class T>() {
    std::pmr::vector<T> host(static_cast<std::size_t>(losses_.count()), runtime_->step().objects());
    runtime_->backend().copy(host.data(), losses_.raw(), losses_.bytes(), CopyKind::device_to_host);
    if (!runtime_->ranks().alone()) gather_rows<T>(host, runtime_->ranks());
    runtime_->step().wrong_ids().check();
    StepLosses total;
    const auto columns = static_cast<std::size_t>(losses_.shape()[1]);
    const auto of_tokens = static_cast<std::size_t>(model_->tokens().most_losses());
    for (std::size_t i = 0; i < host.size(); ++i) {
      const std::size_t column = i % columns;
      (column == 0           ? total.span_loss
       : column <= of_tokens ? total.nll
                             : total.auxiliary) += static_cast<double>(host[i]);
    }
    total.nll /= loss_factor();
    total.auxiliary /= loss_factor();
    return total;
  });
}

void Trainer::check(const StepLosses& losses) const {
  if (!std::isfinite(losses.nll))
    throw Diverged(text("training: the loss of step ", steps_ + 1, " is not finite (", losses.nll, ")"));
  if (!std::isfinite(losses.auxiliary))
    throw Diverged(
        text("training: the auxiliary losses of step ", steps_ + 1, " are not finite (", losses.auxiliary, ")"));
  // A mask of no number is 1, so that the loss alone would not show spans that are none.
  if (!std::isfinite(losses.span_loss))
    throw Diverged(text("training: the span loss of step ", steps_ + 1, " is not finite (", losses.span_loss, ")"));
}

StepReplay::Key Trainer::replay_key() {
  StepReplay::Key key{runtime_->arena().generation(), scored_, model_->auxiliary_count(progress())};
  tokens_.append_state(key);
  for_each_past([&key](const StatePast& past) { past.append_state(key); });
  return key;
}

void Trainer::undo() {
  store_->clear_row_gradients();
  if (!begun_) return;  // it did not come so far
  restore_buffers();
  auto before = valid_before_.begin();
  for_each_past([&](StatePast& past) {
    if (past.valid() != *before++) past.undo(tokens_.remembered());
  });
}

void Trainer::restore_buffers() {
  for (const KeptBuffer& buffer : buffers_)
    runtime_->backend().copy(buffer.now.raw(), buffer.before.raw(), buffer.now.bytes(), CopyKind::device_to_device);
}

void Trainer::for_each_past(const std::function<void(StatePast&)>& found) {
  for (ModelPast& past : pasts_)
    for (const auto& layer : past) found(state_past(*layer));
}

}  // namespace engram

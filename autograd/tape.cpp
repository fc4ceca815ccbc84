#include "autograd/tape.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "core/error.hpp"
#include "core/kernels/fill.hpp"
#include "core/scope.hpp"

namespace engram {

Tape::Tape(Step& step, Mode mode)
    : step_(&step), mode_(mode), slots_(step.objects()), nodes_(step.objects()), places_(step.objects()) {
  if (training()) observer_ = dynamic_cast<TapeObserver*>(step.observer());
  if (observer_ != nullptr) observer_->begun(*this);
}

int Tape::add_slot(Slot slot) {
  slots_.push_back(std::move(slot));
  return static_cast<int>(slots_.size()) - 1;
}

int Tape::enter(Slot slot, const Tensor& value) {
  const int place = add_slot(std::move(slot));
  if (observer_ != nullptr) observer_->entered(*this, place, value);
  return place;
}

Variable Tape::parameter(Parameter& parameter) {
  const Tensor& value = parameter.value_for(step_->activations());
  if (!training() || parameter.gradient_kind() == Gradient::none || parameter.frozen()) return constant(value);
  const DType dtype =
      parameter.gradient_kind() == Gradient::rows ? compute_dtype(value.dtype()) : parameter.gradient().dtype();
  return Variable(value, this,
                  enter({.shape = value.shape(), .dtype = dtype, .parameter = &parameter, .gradient = {}}, value));
}

Variable Tape::parameter(Parameter& parameter, std::int64_t begin, std::int64_t end) {
  if (parameter.gradient_kind() != Gradient::dense)
    throw Error(text("tape: only a dense parameter can be taken by rows, got ", parameter.name()));
  Tensor rows = parameter.value_for(step_->activations()).rows(begin, end);
  if (!training() || parameter.frozen()) return constant(std::move(rows));
  const int slot = enter({.shape = rows.shape(),
                          .dtype = parameter.gradient().dtype(),
                          .parameter = &parameter,
                          .first_row = begin,
                          .gradient = {}},
                         rows);
  return Variable(std::move(rows), this, slot);
}

Tensor Tape::Slot::parameter_gradient() const {
  const Tensor& whole = parameter->gradient();
  return shape == whole.shape() ? whole : whole.rows(first_row, first_row + shape[0]);
}

Variable Tape::leaf(Tensor value, DType gradient) {
  const int slot = enter({.shape = value.shape(), .dtype = gradient, .kept = true, .gradient = {}}, value);
  return Variable(std::move(value), this, slot);
}

Target Tape::final_gradient(const Variable& input) const {
  if (!input.requires_grad()) return {};
  const Slot& slot = slots_[static_cast<std::size_t>(input.slot_)];
  if (slot.parameter == nullptr) return {};
  if (observer_ != nullptr) observer_->arrives(*this, input.slot_, Arrival::add);
  return {slot.parameter_gradient(), Write::add};
}

bool Tape::must_record(std::span<const Variable> inputs) const {
  for (const Variable& input : inputs)
    if (input && input.tape_ != this) throw Error("tape: all inputs of an operation must be on one tape");
  return training() && std::ranges::any_of(inputs, &Variable::requires_grad);
}

int Tape::append(NodePointer node, std::span<const Variable> inputs, std::span<const Tensor> outputs) {
  Recorded recorded{.node = std::move(node),
                    .first = places_.size(),
                    .input_count = inputs.size(),
                    .output_count = outputs.size(),
                    .scope = {}};
  for (const Variable& input : inputs) places_.push_back(input.slot_);
  for (const Tensor& output : outputs)
    places_.push_back(add_slot({.shape = output.shape(), .dtype = output.dtype(), .gradient = {}}));
  if (keep_scopes_) recorded.scope = Scope::path();
  nodes_.push_back(std::move(recorded));
  if (observer_ != nullptr) observer_->recorded(*this, inputs, outputs);
  return outputs_of(nodes_.back()).front();
}

void Tape::seed(const Variable& output, Tensor cotangent) {
  if (!output.requires_grad()) throw Error("backward: the loss does not depend on anything that needs a gradient");
  if (cotangent.shape() != output.shape())
    throw ShapeError(text("backward: the cotangent must be ", output.shape(), ", got ", cotangent.shape()));
  Slot& slot = slots_[static_cast<std::size_t>(output.slot_)];
  if (slot.gradient) throw Error("backward: a loss was given twice");
  slot.root = true;
  slot.gradient = std::move(cotangent);
}

void Tape::backward(std::span<const Variable> scalar_losses) {
  for (const Variable& loss : scalar_losses) {
    if (loss.shape().count() != 1) throw ShapeError(text("backward: a loss must be one number, got ", loss.shape()));
    Tensor one = step_->empty(loss.shape(), loss.dtype());
    kernels::fill(*step_, one, 1.0);
    seed(loss, std::move(one));
  }
  if (observer_ != nullptr) {
    std::vector<int> slots;
    for (const Variable& loss : scalar_losses) slots.push_back(loss.slot_);
    observer_->turned(*this, slots);
  }
  run();
}

void Tape::backward(const Variable& output, const Tensor& cotangent) {
  seed(output, cotangent);
  if (observer_ != nullptr) observer_->turned(*this, {});
  run();
}

std::vector<std::pair<std::size_t, Parameter*>> Tape::find_first_uses() const {
  std::vector<std::pair<std::size_t, Parameter*>> uses;
  std::set<const Parameter*> seen;
  for (std::size_t index = 0; index < nodes_.size(); ++index)
    for (const int slot : inputs_of(nodes_[index])) {
      Parameter* const parameter = slot < 0 ? nullptr : slots_[static_cast<std::size_t>(slot)].parameter;
      const bool dense = parameter != nullptr && parameter->gradient_kind() == Gradient::dense;
      if (dense && seen.insert(parameter).second) uses.emplace_back(index, parameter);
    }
  return uses;
}

void Tape::tell_final(std::size_t node) {
  for (; !first_uses_.empty() && first_uses_.back().first == node; first_uses_.pop_back())
    watcher_->final_gradient(*first_uses_.back().second);
  watcher_->ran();
}

void Tape::run() {
  if (watcher_ != nullptr) first_uses_ = find_first_uses();
  for (std::size_t index = nodes_.size(); index-- > 0;) {
    Recorded& recorded = nodes_[index];
    const bool reached = std::ranges::any_of(outputs_of(recorded),
                                             [this](int slot) { return bool(slots_[std::size_t(slot)].gradient); });
    if (reached) {
      std::optional<Scope> scope;  // of the forward pass, for messages
      if (!recorded.scope.empty()) scope.emplace(recorded.scope);
      if (observer_ != nullptr) observer_->runs(*this, index);
      Backward pass(*this, static_cast<int>(index));
      recorded.node->backward(*step_, pass);
      pass.add_repeated();
    }
    recorded.node.reset();
    for (const int slot : outputs_of(recorded)) slots_[static_cast<std::size_t>(slot)].gradient = {};
    if (watcher_ != nullptr) tell_final(index);
    if (observer_ != nullptr) observer_->ran(*this, index);
  }
  nodes_.clear();
  places_.clear();
}

Tensor Tape::slot_gradient(int slot) const {
  const Slot& at = slots_[static_cast<std::size_t>(slot)];
  if (at.parameter == nullptr) return at.gradient;
  return at.parameter->gradient_kind() == Gradient::dense ? at.parameter_gradient() : Tensor();
}

bool Tape::has_gradient(const Variable& leaf) const {
  return leaf.requires_grad() && slots_[static_cast<std::size_t>(leaf.slot_)].gradient;
}

const Tensor& Tape::gradient(const Variable& leaf) const {
  if (!has_gradient(leaf)) throw Error(text("gradient: none reached this variable of shape ", leaf.shape()));
  return slots_[static_cast<std::size_t>(leaf.slot_)].gradient;
}

Tape::Entry Tape::entry(std::size_t index) const {
  const Recorded& recorded = nodes_.at(index);
  return {recorded.node.get(), recorded.scope, inputs_of(recorded), outputs_of(recorded)};
}

}  // namespace engram

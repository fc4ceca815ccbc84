#include "autograd/backward.hpp"

#include <utility>

#include "autograd/tape.hpp"
#include "core/error.hpp"
#include "core/kernels/copy.hpp"

namespace engram {

Backward::Backward(Tape& tape, int node) : tape_(&tape), node_(node), repeated_(tape.step().objects()) {}

int Backward::input_slot(int input) const {
  const auto& recorded = tape_->nodes_[static_cast<std::size_t>(node_)];
  const std::span<const int> slots = tape_->inputs_of(recorded);
  if (input < 0 || std::size_t(input) >= slots.size())
    throw Error(text(recorded.node->name(), ": has ", slots.size(), " inputs, asked for number ", input));
  return slots[static_cast<std::size_t>(input)];
}

int Backward::output_slot(int output) const {
  const auto& recorded = tape_->nodes_[static_cast<std::size_t>(node_)];
  const std::span<const int> slots = tape_->outputs_of(recorded);
  if (output < 0 || std::size_t(output) >= slots.size())
    throw Error(text(recorded.node->name(), ": has ", slots.size(), " outputs, asked for number ", output));
  return slots[static_cast<std::size_t>(output)];
}

bool Backward::has_output_grad(int output) const {
  return static_cast<bool>(tape_->slots_[static_cast<std::size_t>(output_slot(output))].gradient);
}

const Tensor& Backward::output_grad(int output) const {
  const Tensor& gradient = tape_->slots_[static_cast<std::size_t>(output_slot(output))].gradient;
  if (!gradient)
    throw Error(
        text(tape_->nodes_[static_cast<std::size_t>(node_)].node->name(), ": no gradient reached output ", output));
  return gradient;
}

bool Backward::output_is_root(int output) const {
  return tape_->slots_[static_cast<std::size_t>(output_slot(output))].root;
}

void Backward::tell(int slot, Arrival how) const {
  if (tape_->observer_ != nullptr) tape_->observer_->arrives(*tape_, slot, how);
}

bool Backward::wants_grad(int input) const { return input_slot(input) >= 0; }

Target Backward::input_grad(int input) {
  const int index = input_slot(input);
  if (index < 0) return {};
  Tape::Slot& slot = tape_->slots_[static_cast<std::size_t>(index)];
  tell(index, slot.gradient || slot.parameter != nullptr ? Arrival::add : Arrival::set);
  if (slot.parameter != nullptr) return {slot.parameter_gradient(), Write::add};
  if (!slot.gradient) {
    slot.gradient = tape_->step().empty(slot.shape, slot.dtype);
    return {slot.gradient, Write::set};
  }
  // A gradient that somebody else holds too (a cotangent of the caller) must not be changed under them.
  if (slot.gradient.use_count() > 1) {
    Tensor own = tape_->step().empty(slot.shape, slot.dtype);
    kernels::accumulate(tape_->step(), slot.gradient, 1.0, {own, Write::set});
    slot.gradient = std::move(own);
  }
  return {slot.gradient, Write::add};
}

bool Backward::is_one_gradient(int a, int b) const {
  const int slot_a = input_slot(a), slot_b = input_slot(b);
  if (slot_a < 0 || slot_b < 0) return false;
  if (slot_a == slot_b) return true;
  const Tape::Slot &of_a = tape_->slots_[static_cast<std::size_t>(slot_a)],
                   &of_b = tape_->slots_[static_cast<std::size_t>(slot_b)];
  return of_a.parameter != nullptr && of_b.parameter != nullptr &&
         of_a.parameter_gradient().raw() == of_b.parameter_gradient().raw();
}

Target Backward::separate_grad(int input) {
  for (int earlier = 0; earlier < input; ++earlier)
    if (is_one_gradient(earlier, input)) {
      const Tape::Slot& slot = tape_->slots_[static_cast<std::size_t>(input_slot(input))];
      repeated_.emplace_back(input, tape_->step().empty(slot.shape, slot.dtype));
      return {repeated_.back().second, Write::set};
    }
  return input_grad(input);
}

void Backward::add_repeated() {
  for (auto& [input, gradient] : repeated_) give(input, std::move(gradient));
}

RowGradient* Backward::row_grad(int input) {
  const int index = input_slot(input);
  if (index < 0) return nullptr;
  Parameter* const parameter = tape_->slots_[static_cast<std::size_t>(index)].parameter;
  if (parameter == nullptr || parameter->gradient_kind() != Gradient::rows) return nullptr;
  tell(index, Arrival::rows);
  return &parameter->row_gradient();
}

void Backward::pass_through(std::initializer_list<int> inputs, int output) {
  Tensor& dy = tape_->slots_[static_cast<std::size_t>(output_slot(output))].gradient;
  int last = -1;
  for (const int input : inputs)
    if (wants_grad(input)) last = input;
  for (const int input : inputs) {
    if (!wants_grad(input)) continue;
    if (input == last && dy.use_count() == 1) {
      give(input, std::exchange(dy, {}));
      return;
    }
    kernels::accumulate(tape_->step(), dy, 1.0, input_grad(input));
  }
}

void Backward::give(int input, Tensor gradient) {
  if (!wants_grad(input)) return;
  const int index = input_slot(input);
  Tape::Slot& slot = tape_->slots_[static_cast<std::size_t>(index)];
  // Others may hold it too: who adds to it makes a copy of his own then (input_grad).
  if (slot.parameter == nullptr && !slot.gradient && gradient.dtype() == slot.dtype) {
    tell(index, Arrival::passed);
    slot.gradient = gradient.view(slot.shape);
    return;
  }
  kernels::accumulate(tape_->step(), gradient, 1.0, input_grad(input));
}

}  // namespace engram

#include "apps/tape/tape_recorder.hpp"

#include <algorithm>
#include <utility>

#include "autograd/tape_listing.hpp"
#include "core/arena.hpp"
#include "core/error.hpp"
#include "core/host_copy.hpp"
#include "core/scope.hpp"

namespace engram {
namespace {

template <class T>
std::vector<double> as_doubles(const std::vector<T>& from) {
  return {from.begin(), from.end()};
}

}  // namespace

std::vector<double> small_numbers(Backend& backend, const Tensor& tensor, std::int64_t most) {
  if (!tensor || tensor.count() > most) return {};
  if (tensor.dtype() == DType::i32) return as_doubles(host_copy<std::int32_t>(backend, tensor));
  if (tensor.dtype() == DType::i64) return as_doubles(host_copy<std::int64_t>(backend, tensor));
  return host_doubles(backend, tensor);
}

TapeRecording TapeRecorder::take() {
  if (!done_) throw Error("tape: there must be a step that runs backwards from a loss, found none");
  return std::move(recording_);
}

void TapeRecorder::before(const char*) {
  if (tape_ == nullptr || done_) return;
  if (depth_++ > 0) return;
  backend_->synchronize();
  begun_ = Clock::now();
}

void TapeRecorder::after(const char* kernel) {
  if (tape_ == nullptr || done_ || depth_ == 0 || --depth_ > 0) return;
  backend_->synchronize();
  pass_.seconds += std::chrono::duration<double>(Clock::now() - begun_).count();
  pass_.kernels.emplace_back(kernel);
}

void TapeRecorder::begun(const Tape& tape) {
  const int number = tapes_++;
  if (done_) return;
  tape_ = &tape;
  backend_ = &tape.step().backend();
  recording_ = {};
  recording_.tape = number;
  recording_.most_numbers = most_numbers_;
  pass_ = {};
  pending_.clear();
  value_of_slot_.clear();
  address_of_.clear();
  parameters_.clear();
  slot_of_.clear();
  depth_ = 0;
}

std::vector<double> TapeRecorder::numbers(const Tensor& tensor) const {
  return small_numbers(*backend_, tensor, most_numbers_);
}

std::vector<double> TapeRecorder::gradient(int slot) const { return numbers(tape_->slot_gradient(slot)); }

int TapeRecorder::add_value(ValueKind kind, const std::string& name, const Tensor& tensor, int slot) {
  RecordedValue value;
  value.kind = kind;
  value.name = name;
  value.shape = tensor.shape();
  value.dtype = tensor.dtype();
  value.bytes = tensor.bytes();
  value.numbers = numbers(tensor);
  value.wants_gradient = slot >= 0;
  recording_.values.push_back(std::move(value));
  address_of_.push_back(tensor.raw());
  return static_cast<int>(recording_.values.size()) - 1;
}

std::int64_t TapeRecorder::count_of(ValueKind kind) const {
  return std::ranges::count(recording_.values, kind, &RecordedValue::kind);
}

bool TapeRecorder::lies_in(const void* address, int value) const {
  if (value < 0) return false;
  const auto* const begin = static_cast<const std::byte*>(address_of_[static_cast<std::size_t>(value)]);
  const auto* const at = static_cast<const std::byte*>(address);
  return at >= begin && at < begin + recording_.values[static_cast<std::size_t>(value)].bytes;
}

void TapeRecorder::entered(const Tape& tape, int slot, const Tensor& value) {
  if (!follows(tape)) return;
  value_of_slot_.resize(static_cast<std::size_t>(slot) + 1, -1);
  int& at = value_of_slot_.back();
  const Parameter* const parameter = tape.slot_parameter(slot);
  if (parameter == nullptr) {
    at = add_value(ValueKind::leaf, text("leaf ", count_of(ValueKind::leaf)), value, slot);
    slot_of_[at] = slot;
    return;
  }
  const auto [known, is_new] = parameters_.emplace(parameter, 0);
  if (is_new) known->second = add_value(ValueKind::parameter, parameter->name(), parameter->value(), slot);
  at = known->second;
}

int TapeRecorder::constant(const Tensor& tensor) {
  for (std::size_t i = 0; i < recording_.values.size(); ++i) {
    const RecordedValue& known = recording_.values[i];
    if (known.kind == ValueKind::constant && address_of_[i] == tensor.raw() && known.shape == tensor.shape() &&
        known.numbers == numbers(tensor))
      return static_cast<int>(i);
  }
  return add_value(ValueKind::constant, text("constant ", count_of(ValueKind::constant)), tensor, -1);
}

void TapeRecorder::take_inputs(RecordedOp& op, std::span<const int> slots, std::span<const Variable> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    RecordedInput& input = op.inputs.emplace_back();
    if (slots[i] >= 0) {
      input.value = value_of_slot_[static_cast<std::size_t>(slots[i])];
      input.shape = tape_->slot_shape(slots[i]);
    } else if (inputs[i]) {
      input.value = constant(inputs[i].value());
      input.shape = inputs[i].shape();
    }
  }
}

void TapeRecorder::take_outputs(RecordedOp& op, std::span<const int> slots, std::span<const Tensor> outputs) {
  const int number = static_cast<int>(recording_.ops.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = outputs.size() == 1 ? text("t", number) : text("t", number, ".", i);
    const int made = add_value(ValueKind::output, name, outputs[i], slots[i]);
    value(made).maker = number;
    value(made).shares = std::ranges::any_of(
        op.inputs, [&](const RecordedInput& input) { return lies_in(outputs[i].raw(), input.value); });
    value_of_slot_.resize(static_cast<std::size_t>(slots[i]) + 1, -1);
    value_of_slot_.back() = made;
    slot_of_[made] = slots[i];
    op.outputs.push_back(made);
  }
}

void TapeRecorder::take_kept(RecordedOp& op) {
  for (const Node::Saved& saved : kept_tensors(*tape_, tape_->entry(tape_->size() - 1))) {
    int known = -1;
    const auto look_at = [&](int index) {
      if (index >= 0 && address_of_[static_cast<std::size_t>(index)] == saved.tensor.raw() &&
          value(index).bytes == saved.tensor.bytes())
        known = index;
    };
    for (const RecordedInput& input : op.inputs) look_at(input.value);
    for (const int output : op.outputs) look_at(output);
    op.kept.push_back({std::string(saved.name), saved.tensor.shape(), saved.tensor.bytes(), known});
    op.kept_bytes += saved.tensor.bytes();
  }
}

RecordedMemory TapeRecorder::memory(std::size_t kept) const {
  RecordedMemory now{.kept = kept};
  for (const auto& [unused, slot] : slot_of_)
    if (const Tensor gradient = tape_->slot_gradient(slot)) now.gradients += gradient.bytes();
  if (const auto* const arena = dynamic_cast<const Arena*>(&tape_->step().memory())) now.used = arena->bytes_in_use();
  return now;
}

void TapeRecorder::recorded(const Tape& tape, std::span<const Variable> inputs, std::span<const Tensor> outputs) {
  if (!follows(tape)) return;
  const Tape::Entry entry = tape.entry(tape.size() - 1);
  RecordedOp op;
  op.name = entry.node->name();
  op.scope = Scope::path();
  take_inputs(op, entry.inputs, inputs);
  take_outputs(op, entry.outputs, outputs);
  take_kept(op);
  finish_shares();
  op.forward = std::exchange(pass_, {});
  op.forward.memory = memory(bytes_kept(tape));
  recording_.ops.push_back(std::move(op));
}

void TapeRecorder::turned(const Tape& tape, std::span<const int> losses) {
  if (!follows(tape)) return;
  if (losses.empty()) {
    tape_ = nullptr;
    return;
  }
  for (const int slot : losses) {
    const int index = value_of_slot_[static_cast<std::size_t>(slot)];
    value(index).gradient = gradient(slot);
    for (const double number : value(index).numbers) recording_.loss += number;
    recording_.losses.push_back(index);
  }
  recording_.table = tape_table(tape);
  recording_.turn = memory(bytes_kept(tape));
  pass_ = {};
}

void TapeRecorder::runs(const Tape& tape, std::size_t operation) {
  if (!follows(tape)) return;
  recording_.ops[operation].reached = true;
  pass_ = {};
}

void TapeRecorder::arrives(const Tape& tape, int slot, Arrival how) {
  if (!follows(tape)) return;
  // The share before this one is written by now: its operation asks for one after the other.
  for (std::size_t i = 0; i < pending_.size(); ++i)
    if (pending_[i] == slot) {
      pass_.shares[i].after = gradient(slot);
      pending_[i] = -1;
    }
  RecordedShare share;
  share.value = value_of_slot_[static_cast<std::size_t>(slot)];
  share.shape = tape.slot_shape(slot);
  share.how = how;
  if (how == Arrival::add) share.before = gradient(slot);
  pass_.shares.push_back(std::move(share));
  pending_.push_back(slot);
}

void TapeRecorder::finish_shares() {
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    RecordedShare& share = pass_.shares[i];
    if (pending_[i] >= 0 && share.how != Arrival::rows) share.after = gradient(pending_[i]);
    // Of a parameter of which rows were used, what arrived has another shape.
    if (share.shape == value(share.value).shape) value(share.value).gradient = share.after;
  }
  pending_.clear();
}

void TapeRecorder::ran(const Tape& tape, std::size_t operation) {
  if (!follows(tape)) return;
  RecordedOp& op = recording_.ops[operation];
  finish_shares();
  op.backward = std::exchange(pass_, {});
  // What the operations before it keep is what they kept when they had run.
  op.backward.memory = memory(operation == 0 ? 0 : recording_.ops[operation - 1].forward.memory.kept);
  if (operation > 0) return;
  // Of parameters of which only rows were used, the whole gradient.
  for (const auto& [parameter, index] : parameters_)
    if (parameter->gradient_kind() == Gradient::dense) value(index).gradient = numbers(parameter->gradient());
  done_ = true;
  tape_ = nullptr;
}

TapeRecording record_tape(const TapeStep& step, std::int64_t most_numbers) {
  TapeRecorder recorder(most_numbers);
  step(recorder);
  return recorder.take();
}

}  // namespace engram

#include "apps/tape/tape_differences.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "core/error.hpp"

namespace engram {
namespace {

/// Ends a step whose losses are known.
struct LossesKnown {};

/// Changes one number of a step, and reads its losses.
class Nudge final : public TapeObserver {
 public:
  Nudge(const TapeRecording& recording, int value, std::int64_t element, double by)
      : recording_(recording), value_(value), element_(element), by_(by) {}

  const std::vector<double>& losses() const { return losses_; }

  void begun(const Tape& tape) override {
    const bool same = tapes_++ == recording_.tape;
    tape_ = same ? &tape : nullptr;
    ops_ = 0;
  }
  void entered(const Tape& tape, int slot, const Tensor& value) override {
    if (&tape != tape_ || moved_) return;
    const RecordedValue& wanted = recording_.values[static_cast<std::size_t>(value_)];
    const Parameter* const parameter = tape.slot_parameter(slot);
    if (wanted.kind == ValueKind::parameter && parameter != nullptr && parameter->name() == wanted.name) {
      move(tape, parameter->value());
      restored_ = parameter;
    }
    if (wanted.kind == ValueKind::leaf && parameter == nullptr && text("leaf ", leaves_++) == wanted.name)
      move(tape, value);
  }
  void recorded(const Tape& tape, std::span<const Variable>, std::span<const Tensor> outputs) override {
    if (&tape != tape_) return;
    const auto op = static_cast<std::size_t>(ops_++);
    if (op >= recording_.ops.size()) throw_other();
    const std::vector<int>& made = recording_.ops[op].outputs;
    const std::span<const int> slots = tape.entry(tape.size() - 1).outputs;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (i < made.size() && made[i] == value_) move(tape, outputs[i]);
      if (outputs[i].count() == 1) single_[slots[i]] = small_numbers(tape.step().backend(), outputs[i], 1).front();
    }
  }
  void turned(const Tape& tape, std::span<const int> losses) override {
    if (&tape != tape_) return;
    if (!moved_) throw_other();
    for (const int slot : losses) losses_.push_back(single_.at(slot));
    if (restored_ != nullptr) put(tape, restored_->value(), before_);
    throw LossesKnown();  // NOLINT(bugprone-std-exception-baseclass): no error; who handles those must not have it
  }

 private:
  [[noreturn]] static void throw_other() {
    throw Error("tape: a step must do the same whenever it runs, got other operations the second time");
  }
  void put(const Tape& tape, const Tensor& tensor, double number) const {
    double* const at = tensor.data<double>() + element_;
    tape.step().backend().copy(at, &number, sizeof(double), CopyKind::host_to_device);
  }
  void move(const Tape& tape, const Tensor& tensor) {
    const double* const at = tensor.data<double>() + element_;
    tape.step().backend().copy(&before_, at, sizeof(double), CopyKind::device_to_host);
    put(tape, tensor, before_ + by_);
    moved_ = true;
  }

  const TapeRecording& recording_;
  int value_;
  std::int64_t element_;
  double by_;
  const Tape* tape_ = nullptr;
  int tapes_ = 0, ops_ = 0, leaves_ = 0;
  bool moved_ = false;
  double before_ = 0;
  const Parameter* restored_ = nullptr;  // outlives the step, so it gets its number back
  std::map<int, double> single_;         // slot -> number
  std::vector<double> losses_;
};

std::vector<double> losses_with(const TapeRecording& recording, const TapeStep& step, int value, std::int64_t element,
                                double by) {
  Nudge nudge(recording, value, element, by);
  try {
    step(nudge);
  } catch (const LossesKnown&) {
    return nudge.losses();
  }
  throw Error("tape: a step must do the same whenever it runs, got no losses the second time");
}

bool is_compared(const RecordedValue& value) {
  return value.wants_gradient && value.dtype == DType::f64 && !value.shares && !value.numbers.empty() &&
         value.gradient.size() == value.numbers.size();
}

/// Returns how many of its numbers are right.
std::int64_t compare(RecordedValue& value, double tolerance) {
  double scale = 1e-3;
  for (const double number : value.numeric) scale = std::max(scale, std::abs(number));
  std::int64_t right = 0;
  for (std::size_t i = 0; i < value.numeric.size(); ++i) {
    const double difference = std::abs(value.gradient[i] - value.numeric[i]) / scale;
    if (!(difference <= value.difference)) value.difference = difference;  // also what is no number
    right += difference <= tolerance ? 1 : 0;
  }
  return right;
}

}  // namespace

void add_differences(TapeRecording& recording, const TapeStep& step, const DifferenceOptions& options) {
  const bool exact = std::ranges::all_of(
      recording.losses, [&](int loss) { return recording.values[static_cast<std::size_t>(loss)].dtype == DType::f64; });
  if (!exact) return;
  recording.moved_by = options.difference;
  recording.tolerance = options.tolerance;
  std::vector<int> chosen;
  std::int64_t all = 0;
  for (std::size_t i = 0; i < recording.values.size(); ++i) {
    const RecordedValue& value = recording.values[i];
    if (!is_compared(value)) continue;
    if (all + value.shape.count() > options.most) {
      recording.unchecked += value.shape.count();
      continue;
    }
    all += value.shape.count();
    chosen.push_back(static_cast<int>(i));
  }
  for (const int index : chosen) {
    RecordedValue& value = recording.values[static_cast<std::size_t>(index)];
    std::vector<double> numeric;
    for (std::int64_t element = 0; element < value.shape.count(); ++element) {
      const std::vector<double> above = losses_with(recording, step, index, element, options.difference);
      const std::vector<double> below = losses_with(recording, step, index, element, -options.difference);
      double sum = 0;
      for (std::size_t i = 0; i < above.size(); ++i) sum += above[i] - below[i];
      numeric.push_back(sum / (2 * options.difference));
      ++recording.checked;
      if (options.watch) options.watch(recording.checked, all);
    }
    value.numeric = std::move(numeric);
    recording.agreed += compare(value, options.tolerance);
    if (recording.worst_value >= 0 && !(value.difference > recording.worst)) continue;
    recording.worst = value.difference;
    recording.worst_value = index;
  }
}

}  // namespace engram

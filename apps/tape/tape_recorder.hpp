#pragma once
/// Records a step while it runs. The recording is of the first tape whose backward pass begins from losses.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "apps/tape/tape_recording.hpp"
#include "autograd/tape.hpp"

namespace engram {

/// Runs a step with this observer (Step::observe). It does the same every time that it is called.
using TapeStep = std::function<void(TapeObserver&)>;

/// The numbers of a tensor as doubles, wherever it lies; none where it is absent or has more than `most`.
std::vector<double> small_numbers(Backend& backend, const Tensor& tensor, std::int64_t most);

class TapeRecorder final : public TapeObserver {
 public:
  /// Numbers are recorded of tensors with at most so many.
  explicit TapeRecorder(std::int64_t most_numbers) : most_numbers_(most_numbers) {}

  bool done() const { return done_; }
  /// Throws Error when no tape ran backwards from losses.
  TapeRecording take();

  void before(const char* kernel) override;
  void after(const char* kernel) override;
  void begun(const Tape& tape) override;
  void entered(const Tape& tape, int slot, const Tensor& value) override;
  void recorded(const Tape& tape, std::span<const Variable> inputs, std::span<const Tensor> outputs) override;
  void turned(const Tape& tape, std::span<const int> losses) override;
  void runs(const Tape& tape, std::size_t operation) override;
  void arrives(const Tape& tape, int slot, Arrival how) override;
  void ran(const Tape& tape, std::size_t operation) override;

 private:
  using Clock = std::chrono::steady_clock;

  bool follows(const Tape& tape) const { return &tape == tape_ && !done_; }
  std::vector<double> numbers(const Tensor& tensor) const;
  std::vector<double> gradient(int slot) const;
  RecordedValue& value(int index) { return recording_.values[static_cast<std::size_t>(index)]; }
  /// Returns its index.
  int add_value(ValueKind kind, const std::string& name, const Tensor& tensor, int slot);
  std::int64_t count_of(ValueKind kind) const;
  bool lies_in(const void* address, int value) const;
  int constant(const Tensor& tensor);
  void take_inputs(RecordedOp& op, std::span<const int> slots, std::span<const Variable> inputs);
  void take_outputs(RecordedOp& op, std::span<const int> slots, std::span<const Tensor> outputs);
  void take_kept(RecordedOp& op);
  RecordedMemory memory(std::size_t kept) const;
  void finish_shares();

  std::int64_t most_numbers_;
  const Tape* tape_ = nullptr;
  Backend* backend_ = nullptr;  // of that tape, which may be gone when a kernel runs
  int tapes_ = 0;
  bool done_ = false;
  TapeRecording recording_;
  RecordedPass pass_;         // of the operation that runs, or will be recorded next
  std::vector<int> pending_;  // slots of the shares of pass_; -1: what arrived is known
  std::vector<int> value_of_slot_;
  std::vector<const void*> address_of_;  // of values, while they live
  std::map<const Parameter*, int> parameters_;
  std::map<int, int> slot_of_;  // of outputs and leaves
  int depth_ = 0;               // kernels that run inside each other
  Clock::time_point begun_;
};

/// Runs the step once and records it. Throws Error when no tape of it ran backwards from losses, and what the step
/// throws.
TapeRecording record_tape(const TapeStep& step, std::int64_t most_numbers);

}  // namespace engram

#pragma once
/// The steps of docs/guide/autograd-tour*.md, one function each. A step prints what the page shows under its heading; a
/// test compares the two, so numbers are printed with few digits and nothing depends on the machine.

#include <ostream>
#include <span>
#include <string>
#include <string_view>

#include "core/step.hpp"

namespace engram::tour {

struct TourStep {
  std::string_view title;
  void (*run)(std::ostream& out);
  /// The same, and its step is observed. nullptr: it has no tape of autograd/tape.hpp that runs backwards from a loss.
  void (*observed)(std::ostream& out, KernelObserver* observer) = nullptr;
  /// What its leaves and its constants are called in the listing, in the order in which they enter the tape that is
  /// observed, with blanks between.
  std::string_view leaves = {}, constants = {};
};

/// In the order of the page; step number i + 1 is element i.
std::span<const TourStep> tour_steps();

/// The program without its streams: no argument prints all steps, a number prints one, and `--trace OP` an operation
/// that is watched (apps/tour/trace/op_trace.hpp). Returns the exit code: 0, or 2 for an argument that is none of
/// these. Throws what trace_op throws for its device.
int run_tour(std::span<const std::string> arguments, std::ostream& out, std::ostream& errors);

void scalar_tape(std::ostream& out);
void tensor_tape(std::ostream& out);
void node_tape(std::ostream& out);
void gradient_targets(std::ostream& out);
void step_memory(std::ostream& out);
void step_object(std::ostream& out);
void kernel_slots(std::ostream& out);
void real_tape(std::ostream& out, KernelObserver* observer = nullptr);
void trained_values(std::ostream& out, KernelObserver* observer = nullptr);
void dropped_elements(std::ostream& out, KernelObserver* observer = nullptr);
void consumed_logits(std::ostream& out, KernelObserver* observer = nullptr);
void random_cotangent(std::ostream& out);
void listed_tape(std::ostream& out, KernelObserver* observer = nullptr);
void added_op(std::ostream& out, KernelObserver* observer = nullptr);
void learned_circle(std::ostream& out, KernelObserver* observer = nullptr);

}  // namespace engram::tour

#pragma once
/// Sees from inside what a step computes: the kernels that it calls, what its tapes record, and how gradients arrive.

#include <array>
#include <cstdint>
#include <span>

#include "autograd/variable.hpp"
#include "core/names.hpp"
#include "core/step.hpp"

namespace engram {

/// How a share of a gradient reaches a value.
enum class Arrival : std::uint8_t {
  set,     ///< the first one: it is written
  add,     ///< it is added to what is there, which of a parameter is what its gradient was before
  passed,  ///< a tensor that holds it already is handed over, and nothing is computed
  rows     ///< of a table: rows, with their numbers (RowGradient)
};
constexpr auto names_of(Arrival) {
  return std::to_array<Named<Arrival>>(
      {{Arrival::set, "set"}, {Arrival::add, "add"}, {Arrival::passed, "passed"}, {Arrival::rows, "rows"}});
}

/// What Step::observe() takes is told of kernels; if it is one of these, every tape for training that is made of the
/// step from then on tells it what follows. A tape without one asks nothing but whether there is one. All may throw,
/// which ends the step. No handle on a tensor may be kept: an operation that consumes its input demands to be its only
/// holder. Numbers are copied where they are wanted.
class TapeObserver : public KernelObserver {
 public:
  void before(const char* /*kernel*/) override {}
  void after(const char* /*kernel*/) override {}

  /// A tape was made.
  virtual void begun(const Tape&) {}
  /// A leaf, or one use of a parameter: before any operation reads its value.
  virtual void entered(const Tape&, int /*slot*/, const Tensor& /*value*/) {}
  /// An operation ran and was recorded: the tape's last entry. `inputs` has constants too.
  virtual void recorded(const Tape&, std::span<const Variable> /*inputs*/, std::span<const Tensor> /*outputs*/) {}
  /// Backward begins. The gradient of each loss is 1; none of them: it began from an output with a cotangent.
  virtual void turned(const Tape&, std::span<const int> /*losses*/) {}
  /// The backward pass of an operation is about to run: the gradients of its outputs are whole.
  virtual void runs(const Tape&, std::size_t /*operation*/) {}
  /// A share of a slot's gradient is about to be written, by the operation that runs; or, before backward, into a
  /// parameter by one that is about to be recorded (Tape::final_gradient). The gradient is still what it was before.
  virtual void arrives(const Tape&, int /*slot*/, Arrival) {}
  /// An operation is off the tape, and what it kept is free.
  virtual void ran(const Tape&, std::size_t /*operation*/) {}
};

}  // namespace engram

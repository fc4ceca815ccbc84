#pragma once
/// Gradients of a recorded step beside differences of its loss. The step runs forward twice for every number, which is
/// changed in the very place where the step has it: in a parameter, in a leaf, or in what an operation has made.

#include <cstdint>
#include <functional>

#include "apps/tape/tape_recorder.hpp"

namespace engram {

struct DifferenceOptions {
  double difference = 1e-5;    ///< to both sides of a number
  double tolerance = 1e-6;     ///< TapeRecording::tolerance
  std::int64_t most = 100000;  ///< numbers in all; values that come too late stay without
  std::function<void(std::int64_t done, std::int64_t all)> watch;  ///< how far it is; may be empty
};

/// Adds them for values in f64 whose numbers and gradient were recorded: what is a view of another value is left out,
/// as both would change at once. `step` is that of record_tape(); it is ended by an exception when its losses are
/// known, which it must let through. Nothing is added where the loss is not in f64. Throws Error when the step does not
/// do the same again, and what it throws.
void add_differences(TapeRecording& recording, const TapeStep& step, const DifferenceOptions& options = {});

}  // namespace engram

#pragma once
/// The tape of one training step of a configuration's model, with random weights and random tokens.

#include <cstdint>

#include "apps/run/config/run_config.hpp"
#include "apps/run/model/runtime.hpp"
#include "apps/tape/tape_recording.hpp"
#include "apps/terminal/work_progress.hpp"
#include "core/dtype.hpp"

namespace engram {

struct ModelTapeOptions {
  DType dtype = DType::f64;          ///< of the parameters, f32 or f64
  std::int64_t most_numbers = 256;   ///< as TapeRecording has it
  std::int64_t differences = 20000;  ///< as DifferenceOptions::most; 0: none
};

/// One piece of a batch, as training computes it: clean gradients, forward, backward. Nothing is updated. In f64 small
/// gradients are compared with differences. Throws UsageError without a vocabulary, and for a model that cannot be in
/// this dtype. `watch`: how many numbers have been compared; may be empty.
TapeRecording record_model(const RunConfig& config, const ModelTapeOptions& options, Runtime& runtime,
                           const WorkWatch& watch = {});

}  // namespace engram

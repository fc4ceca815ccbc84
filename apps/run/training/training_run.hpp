#pragma once
/// A training run in its folder, from the first step or a checkpoint to the last step.
///
///   RUN_DIR/config.toml                    the configuration as resolved
///   RUN_DIR/metrics.jsonl                  metrics_log.hpp; docs/reference/training.md lists the members
///   RUN_DIR/checkpoint/model.safetensors   the newest state, enough to go on
///   RUN_DIR/best/model.safetensors         the model with the best short validation

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/config/run_config.hpp"
#include "core/communicator.hpp"
#include "core/device.hpp"
#include "core/dtype.hpp"

namespace engram {

struct TrainingRunOptions {
  std::filesystem::path config;        ///< TOML; may be empty with `resume` or `from`: that run's own
  std::vector<std::string> overrides;  ///< section.key=value
  /// schedule.steps. With no more of them than the configuration has for its warm-up, that is a tenth of them: a trial.
  std::optional<std::int64_t> steps;
  std::filesystem::path data;  ///< DATA_DIR
  std::filesystem::path from;  ///< RUN_DIR or checkpoint whose weights a new run begins with; empty: none
  std::filesystem::path out;   ///< RUN_DIR
  Device device;
  std::optional<DType> dtype;  ///< f32 or f64; none: f32, with `resume` that of the run
  int threads = 0;             ///< 0: as many as there are
  bool resume = false;
  bool resize_span = false;       ///< with `resume`: model.max_span may be another than the run's
  bool list_tape = false;         ///< print the tape of the first step to stdout
  bool trace_nan = false;         ///< stop at the first number that is not finite
  Communicator* ranks = nullptr;  ///< the processes that train together; nullptr: one
  int ranks_here = 1;             ///< of those, the ones on this machine, which share its memory
  std::string run = {};           ///< which of several runs it is, for its progress: "2/8"; empty: there is one
};

struct TrainingRunResult {
  std::int64_t step = 0;
  std::optional<double> best_nll;  ///< of the short validations, nats per token
};

/// Trains until the configured step. `stop` is asked after every step; when it says true the run is saved and
/// Interrupted is thrown. Throws UsageError for options and configurations that are refused, FileError when a file
/// cannot be read or written (the last checkpoint stays), Diverged when the training has failed.
TrainingRunResult run_training(const TrainingRunOptions& options, const std::function<bool()>& stop);

}  // namespace engram

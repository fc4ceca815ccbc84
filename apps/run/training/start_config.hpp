#pragma once
/// Which configuration a run trains with, of the several that may be at hand.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "apps/run/config/run_config.hpp"
#include "apps/run/model/checkpoint_format.hpp"
#include "apps/run/transfer/weight_source.hpp"
#include "core/device.hpp"
#include "core/dtype.hpp"

namespace engram {

/// What was asked for; as in TrainingRunOptions.
struct StartConfigOptions {
  std::filesystem::path config;  ///< empty: none
  std::filesystem::path out;
  std::vector<std::string> overrides;
  std::optional<std::int64_t> steps;
  DeviceKind device;
  DType dtype;  ///< of a new run's parameters
};

/// `toml`: the text of options.config, empty where none is named. `before`: of a run that goes on, which has its own;
/// of the file it takes what that names. `weights`: of a new run that begins with others', whose configuration serves
/// where no file is named. Throws UsageError.
RunConfig start_config(const StartConfigOptions& options, const std::optional<CheckpointFacts>& before,
                       const std::optional<WeightSource>& weights, const std::string& toml);

}  // namespace engram

#pragma once
/// The results of a sweep as text for people, CSV and JSON.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/studies/sweeps/sweep_result.hpp"

namespace engram {

/// One line for each variant; with several seeds mean and range.
std::string table_of(const SweepOptions& options, const std::vector<VariantResult>& variants);
/// The table as CSV, with a header; numbers that there are not are empty.
std::string csv_of(const SweepOptions& options, const std::vector<VariantResult>& variants);
/// One line for each run.
std::string csv_of(const SweepOptions& options, const std::vector<SweepRun>& runs,
                   const std::vector<RunResult>& results);
nlohmann::json json_of(const SweepOptions& options, const std::vector<SweepRun>& runs,
                       const std::vector<RunResult>& results, const std::vector<std::string>& warnings);

/// What would be trained: parameters and tokens of each run, and what is in its folder.
std::string table_of(const std::vector<SweepRun>& runs);
nlohmann::json json_of(const SweepOptions& options, const std::vector<SweepRun>& runs,
                       const std::vector<std::string>& warnings);

}  // namespace engram

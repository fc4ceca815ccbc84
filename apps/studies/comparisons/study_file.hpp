#pragma once
/// What a study asks, and how: a TOML file (docs/reference/study.md).

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/studies/sweeps/ordering.hpp"
#include "apps/studies/sweeps/sweep_plan.hpp"
#include "core/names.hpp"

namespace engram {

/// What all variants of a study have the same of.
enum class Budget : std::uint8_t {
  parameters,  ///< of the whole model, within the study's tolerance
  tokens,      ///< that are trained on: the same steps of the same batch
  arithmetic   ///< of training, by the formulas of cost: a variant that takes more for a token makes fewer steps
};
constexpr auto names_of(Budget) {
  return std::to_array<Named<Budget>>(
      {{Budget::parameters, "parameters"}, {Budget::tokens, "tokens"}, {Budget::arithmetic, "arithmetic"}});
}

struct StudyPlan {
  std::string name;              ///< of the file, without its ending
  std::string title;             ///< in words
  std::filesystem::path config;  ///< TOML that all variants begin with, or a name of engram configs
  std::vector<Budget> equal;     ///< one of tokens and arithmetic, and parameters or not
  double tolerance = 0.02;       ///< how far the largest number of parameters may be above the smallest
  /// Multiples of each variant's schedule.rate. Every variant is tried with all of them.
  std::vector<double> rates;
  double trial_share = 0.25;         ///< of the steps: the length of a trial
  std::uint64_t trial_seed = 101;    ///< of all trials; none of `seeds`
  std::vector<std::uint64_t> seeds;  ///< of the runs that are compared: two or more
  std::int64_t block = 4000;         ///< tokens of a held-out block
  double confidence = 0.95;          ///< of the intervals
  std::vector<SweepVariant> variants;
  std::vector<Claim> claims;  ///< without `column`

  bool equal_in(Budget budget) const;
};

/// Reads a study. `source` is named in messages. Throws UsageError for what is no study, naming the key and its value.
StudyPlan parse_study(std::string_view written, const std::string& source);

/// The file itself, or that of this name beside the configurations that come with the program. Throws FileError where
/// there is none, with those that there are.
std::filesystem::path find_study(const std::filesystem::path& named);

/// parse_study() of such a file. Throws as both, and FileError for what cannot be read.
StudyPlan read_study(const std::filesystem::path& named);

}  // namespace engram

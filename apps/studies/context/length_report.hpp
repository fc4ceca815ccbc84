#pragma once
/// A sweep over attention lengths for people, programs and browsers.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/studies/context/length_sweep.hpp"

namespace engram {

struct LengthReport {
  std::string data, split;  ///< what was read
  std::int64_t tokens = 0;  ///< of it
  data::TokenKind kind{};
  double tolerance = 0;  ///< of the score
  LengthSweepOptions options;
  std::vector<LengthCurve> curves;  ///< at least one
};

/// A line for each run, then one for each length.
std::string length_table(const LengthReport& report);
/// run,reads,training_length,length,keys,stride,scored,nll,bpc (or ppl),seconds,note: a line for each run and length.
std::string length_csv(const LengthReport& report);
nlohmann::json length_json(const LengthReport& report);
/// A line for each run, score over length. Throws UsageError when no run has any length that is possible.
std::string draw_lengths(const LengthReport& report);

}  // namespace engram

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

/// The score within which a length is long enough, of the best: 0.001 bits of characters, 0.01 of the perplexity of
/// words.
double usual_tolerance(data::TokenKind kind);
/// A point of a run's curve as a line of the log.
std::string line_of(const StudiedRun& run, const LengthPoint& point, data::TokenKind kind);

/// A line for each run, then one for each length.
std::string table_of(const LengthReport& report);
/// run,reads,training_length,length,keys,stride,scored,nll,bpc (or ppl),seconds,note: a line for each run and length.
std::string csv_of(const LengthReport& report);
nlohmann::json json_of(const LengthReport& report);
/// A line for each run, score over length. Throws UsageError when no run has any length that is possible.
std::string svg_of(const LengthReport& report);

}  // namespace engram

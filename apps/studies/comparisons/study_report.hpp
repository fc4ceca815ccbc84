#pragma once
/// A study as text for people, CSV, JSON and a figure.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "apps/studies/comparisons/study.hpp"
#include "apps/studies/figures/figure.hpp"

namespace engram {

/// The variants with their budgets, rates and scores; then every claim with its difference, interval and verdict in
/// words; then what should make a reader careful.
std::string table_of(const StudyReport& report);
/// A line for each comparison; differences in nats per token.
std::string csv_of(const StudyReport& report);
nlohmann::json json_of(const StudyReport& report);
/// The differences with their intervals, beside the line of no difference.
std::string svg_of(const StudyReport& report);

/// "0.0123 bits per character lower (95%: 0.0050 to 0.0196 lower)": the left side of the difference against the right.
std::string difference_text(const PairedDifference& difference, data::TokenKind kind, double confidence);

/// What a study would train, before anything of it is: parameters, tokens and minutes.
struct StudyForecast {
  StudyPlan plan;
  StudyOptions options;
  std::vector<StudyVariant> variants;
  std::vector<double> step_seconds;
  std::int64_t held_out_tokens = 0;  ///< that each run is measured on
};
std::string table_of(const StudyForecast& forecast);
nlohmann::json json_of(const StudyForecast& forecast);

}  // namespace engram

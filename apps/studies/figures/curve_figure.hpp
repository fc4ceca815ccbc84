#pragma once
/// Training curves of several runs: any figure of their logs over steps, tokens or time.

#include <cstdint>
#include <string>
#include <vector>

#include "apps/studies/figures/figure.hpp"
#include "apps/studies/figures/figure_runs.hpp"
#include "apps/studies/figures/seed_spread.hpp"
#include "core/names.hpp"

namespace engram {

enum class CurveAxis : std::uint8_t { steps, tokens, seconds, hours };
constexpr auto names_of(CurveAxis) {
  return std::to_array<Named<CurveAxis>>({{CurveAxis::steps, "steps"},
                                          {CurveAxis::tokens, "tokens"},
                                          {CurveAxis::seconds, "seconds"},
                                          {CurveAxis::hours, "hours"}});
}

struct CurveRequest {
  std::vector<FigureRun> runs;
  /// train_ or valid_ and a number of such lines of metrics.jsonl: "valid_bpc"; the prefix may be left out where one
  /// kind of line alone has it. Of memories' lists with the layer: "valid_memory_usage_5". Empty: the score of
  /// validations, or of training where there are none.
  std::vector<std::string> metrics;
  CurveAxis axis = CurveAxis::steps;
  std::int64_t smooth = 1;  ///< each point is the mean of so many reports around it; 1: as reported
  SeedSpread spread = SeedSpread::range;
};

/// A panel for each metric. Runs of one name are one line: the mean over those that have a report there, at the steps
/// that all of them have. Lines of logs that are no reports, reports without the number, and runs that have none at all
/// are left out, and told. Throws UsageError for a metric that no run has, naming those there are, and FileError.
Figure curve_figure(const CurveRequest& request);

}  // namespace engram

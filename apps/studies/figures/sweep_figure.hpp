#pragma once
/// What a sweep measured, drawn: a figure against a key that varies, by variant as bars, or against another figure.

#include <string>
#include <vector>

#include "apps/studies/figures/figure.hpp"
#include "apps/studies/figures/seed_spread.hpp"
#include "apps/studies/figures/sweep_folder.hpp"

namespace engram {

struct SweepFigureRequest {
  /// Columns of runs.csv, a panel for each; empty: the score of the validation split after the last step.
  std::vector<std::string> metrics;
  /// A key, "variant", or a column of runs.csv. Empty: the key that varies, where there is one; else "variant".
  std::string x;
  std::vector<std::string> by;  ///< keys whose values make a series each; empty: those that it takes
  std::vector<KeyValue> where;  ///< only runs with these values of keys
  std::string label;            ///< beside the points: a key, "variant" or "none"; empty: as the figure needs it
  bool bars = false;            ///< even where x has numbers
  SeedSpread spread = SeedSpread::range;
};

/// Points are means over seeds. Against a key whose values are numbers they are lines, against one with other values
/// and against "variant" bars. Against a column they are points in both, each of a variant, joined within a series if
/// `by` is given. Keys that differ between runs of one point make series by themselves. Runs that are not done and runs
/// without the figure are left out, and told. Throws UsageError for names that there are not, with those there are; for
/// a key that does not vary; and for a `by` that leaves runs of different keys in one point.
Figure sweep_figure(const SweepFolder& sweep, const SweepFigureRequest& request);

}  // namespace engram

#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "apps/command_line/command.hpp"
#include "apps/commands/model_arguments.hpp"
#include "apps/commands/reading_arguments.hpp"
#include "apps/commands/report_output.hpp"
#include "apps/studies/figures/curve_figure.hpp"
#include "apps/studies/figures/sweep_figure.hpp"
#include "core/names.hpp"

namespace engram {

enum class FigureKind : unsigned char { curves, sweep, heads, offsets };
constexpr auto names_of(FigureKind) {
  return std::to_array<Named<FigureKind>>({{FigureKind::curves, "curves"},
                                           {FigureKind::sweep, "sweep"},
                                           {FigureKind::heads, "heads"},
                                           {FigureKind::offsets, "offsets"}});
}

/// What `engram figure` takes: some of it is for some kinds alone.
struct FigureArguments {
  std::vector<std::string> runs;
  ReportOutput output;
  ModelArguments model;  ///< its run is each of the runs in turn
  ReadingArguments read;
  std::string heads;
  std::int64_t rows = 64;

  /// Adds all options to the command, which must outlive this.
  void add_to(Command& command);
  /// Which kind it is. Throws UsageError for options that are not for this kind, for another number of runs than it
  /// takes, and for files that results must not go to.
  FigureKind kind() const;
  /// Throws UsageError for lengths, ranges and names that are none.
  FigureStyle style() const;
  CurveRequest curves() const;
  SweepFigureRequest sweep() const;
  /// Of the series, in their order; empty: none were given.
  std::vector<std::string> names() const;

 private:
  void add_choices(Command& command);
  void add_looks(Command& command);
  void refuse_given(FigureKind kind) const;
  /// --where.
  std::vector<KeyValue> wanted() const;
  SeedSpread spread() const { return parse_named<SeedSpread>("figure: --spread", spread_); }

  const Command* command_ = nullptr;
  std::string kind_, x_, label_, spread_ = "range", names_;
  std::vector<std::string> metrics_, by_, where_;
  std::int64_t smooth_ = 1, columns_ = 0;
  bool bars_ = false, plain_ = false;
  std::string title_, x_label_, y_label_, log_, y_range_, width_ = "120mm", height_;
  double font_ = 8;
};

/// "88", "88mm" or "250pt" in points (1/72 inch); without a unit it is millimetres. Throws UsageError naming `option`
/// for anything else, and for less than 20 or more than 2000 mm.
double parse_paper_length(std::string_view written, std::string_view option);

}  // namespace engram

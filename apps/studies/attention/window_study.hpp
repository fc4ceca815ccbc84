#pragma once
/// Where recurrent models with short attention look in their window, over a text or whole splits. Daniluk et al.:
/// "Frustratingly Short Attention Spans in Neural Language Modeling" (2017), figure 3; [key-value-predict 6].

#include <cstdint>
#include <span>
#include <vector>

#include "apps/data/blocks/evaluation_plan.hpp"
#include "apps/run/evaluation/watched_plan.hpp"
#include "apps/run/model/placed_model.hpp"
#include "nn/models/recurrent.hpp"

namespace engram {

/// Means over positions whose window is full, so that all of them have as many places to look at.
class WindowMeans {
 public:
  /// `window`: L, columns. `newest`: offset of the last one, -1, or 0 where a position sees itself.
  WindowMeans(std::int64_t window, std::int64_t newest);
  /// The weights of one position, [L], newest last; they sum to 1.
  void add(std::span<const double> weights);

  std::int64_t window() const { return static_cast<std::int64_t>(sums_.size()); }
  /// Of a column: positions from the present one, 0 or below.
  std::int64_t offset(std::int64_t column) const { return newest_ - (window() - 1 - column); }
  std::int64_t positions() const { return positions_; }

  /// Of positions(), which must be some. [L], newest last; they sum to 1.
  std::vector<double> weights() const;
  /// Nats, the mean of the positions' own; at most ln L.
  double entropy() const { return entropy_ / static_cast<double>(positions_); }
  /// The mean of weight times offset, in positions, 0 or below.
  double mean_offset() const;
  /// The weight on the so many newest columns, or all where there are fewer, in [0, 1].
  double newest_share(std::int64_t columns) const;

 private:
  std::vector<double> sums_;  // by column
  double entropy_ = 0;        // nats, their sum
  std::int64_t newest_, positions_ = 0;
};

/// The weights of one position.
struct WindowRow {
  std::int64_t position = 0;    ///< how many are before it in its text
  std::int32_t token = 0;       ///< that is read there
  std::int64_t seen = 0;        ///< columns that show a position: the last ones
  std::vector<double> weights;  ///< [L], newest last
};

class WindowStudy {
 public:
  /// Which positions are kept as rows: those of tokens [first, first + count) of what is read.
  struct Rows {
    std::int64_t first = 0, count = 0;
  };
  /// Throws UsageError for a readout without weights, see check().
  WindowStudy(const Placed<RecurrentModel>& placed, Rows rows);
  /// Throws UsageError naming the readout unless it has weights.
  static void check(const RecurrentOptions& options);

  /// A pass of the plan, whose blocks have so many rows each. What is not scored does not count. In memory are one
  /// block, sums, and the rows that are kept.
  void read(data::EvaluationPlan& plan, std::int64_t streams);
  /// A text from its start, in blocks of at most `block` tokens; every token of it is a position.
  void read(std::span<const std::int32_t> tokens, std::int64_t block, const EvaluationWatch& watch = {});

  const WindowMeans& means() const { return means_; }
  std::int64_t positions() const { return positions_; }  ///< that were read
  const std::vector<WindowRow>& rows() const { return kept_; }
  /// Positions that see themselves.
  bool sees_itself() const { return placed_.model.options().readout == ReadoutKind::recurrent_memory; }

 private:
  void read_block(const data::Block& block, ModelPast& past);
  void take(const data::Block& block, std::span<const double> weights, std::int64_t before);

  Placed<RecurrentModel> placed_;
  Rows wanted_;
  WindowMeans means_;
  std::vector<WindowRow> kept_;
  std::int64_t positions_ = 0;
};

}  // namespace engram

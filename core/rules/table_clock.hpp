#pragma once
/// What deferred updates of a table's rows need to know of the past. A row that no step used moves on by Adam all the
/// same, because its moments fade but are not zero. From step t0 to step t, without epsilon, its elements become
///   p(t) = D(t0, t) p(t0) - F(t0, t) m / sqrt(v),   m <- b1^(t - t0) m,   v <- b2^(t - t0) v
///   F(t0, t) = sum over t0 < i <= t of c_i D(i, t) (b1 / sqrt(b2))^(i - t0),   c_i = lr_i sqrt(1 - b2^i) / (1 - b1^i)
/// with D(t0, t) the product of the steps' 1 - lr_i decay: [product-key 2.4].
/// Rates may change from step to step. The terms of F shrink by r = b1 / sqrt(b2) each, so that a sum ends after
/// `terms` of them, where r^terms < 1e-17.

#include <cmath>
#include <cstdint>

#include "core/host_device.hpp"

namespace engram {

/// The layout of the clock of a table's optimiser, a tensor of count() f64 on the device. F(t - d, t) is kept for every
/// d up to `terms`, and for a row that was left alone for longer, F(t0, t0 + terms) by t0. These are rings of kRing
/// steps, so a row must be brought up to date every kPeriod steps at least.
struct TableClock {
  std::int64_t terms = 0;

  static constexpr std::int64_t kRing = std::int64_t{1} << 16;
  static constexpr std::int64_t kPeriod = kRing / 2;
  static constexpr std::int64_t kNow = 0;    ///< the place of t, the number of steps that it has seen the end of
  static constexpr std::int64_t kBegin = 1;  ///< the place of the first t from which on it has seen all
  /// Largest r: with more, `terms` would be over 3900.
  static constexpr double kLargestRatio = 0.99;

  /// 0 <= b1 < 1, 0 < b2 < 1, and r at most kLargestRatio.
  static TableClock of(double beta1, double beta2) {
    const double ratio = beta1 / std::sqrt(beta2);
    return {ratio <= 0 ? 1 : 1 + static_cast<std::int64_t>(std::ceil(std::log(1e-17) / std::log(ratio)))};
  }
  ENGRAM_HD constexpr std::int64_t count() const { return 2 + terms + 1 + 3 * kRing; }

  /// The place of F(t - d, t), 0 <= d <= terms.
  ENGRAM_HD constexpr std::int64_t recent(std::int64_t d) const { return 2 + d; }
  /// The place of c_i.
  ENGRAM_HD constexpr std::int64_t size_of_step(std::int64_t i) const { return 2 + terms + 1 + i % kRing; }
  /// The place of log D(0, i).
  ENGRAM_HD constexpr std::int64_t log_decay(std::int64_t i) const { return size_of_step(i) + kRing; }
  /// The place of F(t0, t0 + terms).
  ENGRAM_HD constexpr std::int64_t whole(std::int64_t t0) const { return size_of_step(t0) + 2 * kRing; }

  /// D(i, t).
  ENGRAM_HD double decay(const double* clock, std::int64_t i, std::int64_t t) const {
    return std::exp(clock[log_decay(t)] - clock[log_decay(i)]);
  }
  /// The part of a table's rows that is due in the step after step t, so that every row is within kPeriod steps.
  struct Range {
    std::int64_t begin, end;
  };
  ENGRAM_HD static constexpr Range due(std::int64_t rows, std::int64_t t) {
    const std::int64_t part = (rows + kPeriod - 1) / kPeriod;
    const std::int64_t begin = t % kPeriod * part;
    return {begin < rows ? begin : rows, begin + part < rows ? begin + part : rows};
  }
};

/// What brings the elements of a row from step t0 to step `now`: p <- decay p - move m / sqrt(v), m <- first m,
/// v <- second v; an element with v = 0 does not move.
struct RowCatchUp {
  double decay = 1, move = 0, first = 1, second = 1;

  ENGRAM_HD static RowCatchUp of(const double* clock, const TableClock& layout, double beta1, double beta2,
                                 std::int64_t t0, std::int64_t now) {
    const auto gap = static_cast<double>(now - t0);
    RowCatchUp result;
    result.decay = layout.decay(clock, t0, now);
    result.move = now - t0 <= layout.terms ? clock[layout.recent(now - t0)]
                                           : clock[layout.whole(t0)] * layout.decay(clock, t0 + layout.terms, now);
    result.first = std::pow(beta1, gap);
    result.second = std::pow(beta2, gap);
    return result;
  }
};

}  // namespace engram

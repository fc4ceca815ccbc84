#pragma once
/// Two models compared on the same text, with a confidence interval for what another text and other seeds would show.

#include <cstdint>
#include <vector>

namespace engram {

/// Mean losses by seed and block: losses[s][i] is of seed s on block i of the text, in nats per token.
using BlockLossesBySeed = std::vector<std::vector<double>>;

struct PairedDifference {
  double difference = 0;  ///< mean loss of the left minus that of the right, nats per token; below 0: left is better
  double standard_error = 0;  ///< of it, over texts and seeds
  double freedom = 1;         ///< degrees of freedom of the standard error
  double low = 0, high = 0;   ///< the interval
  std::int64_t blocks = 0;
  /// What the standard error is made of: standard errors that the blocks alone, and the seeds alone, would give.
  double block_error = 0, seed_error = 0;
  /// Correlation of neighbouring blocks' differences. Blocks of a text that was cut long enough have none.
  double neighbours = 0;

  double half_width() const { return (high - low) / 2; }
  bool is_below_zero() const { return high < 0; }
  bool is_above_zero() const { return low > 0; }
  /// Whether neighbours are alike by more than chance: the blocks are too short, and the interval with them.
  bool blocks_hang_together() const;
};

/// The loss of variant v, seed s and block i is modelled as
///
///   x_vsi = m_v + a_vs + b_vi + e_vsi
///
/// with independent a (what a seed does everywhere), b (what a block does to a variant; b_1i and b_2i may depend on
/// each other, which is why differences are taken block by block) and e (the rest). With n blocks and S_v seeds, the
/// estimated variance of the difference of means is
///
///   V = B + A_1 + A_2 - E_1 - E_2
///
/// where B is the variance of the blocks' differences (of means over seeds) over n, A_v the variance of the seeds'
/// means over S_v, and E_v the variance of the residuals x_vsi - x_vs. - x_v.i + x_v.. over S_v n. B and A_v each
/// contain E_v once, so it is taken off once, and the expectation of V is the true variance. Where chance makes V
/// smaller than B or than A_1 + A_2, the larger of these takes its place. Its degrees of freedom are Satterthwaite's,
///
///   V^2 / (B^2 / (n - 1) + sum_v A_v^2 / (S_v - 1) + sum_v E_v^2 / ((S_v - 1)(n - 1))),
///
/// but not fewer than those of the smallest part, and the interval is difference +- t sqrt(V) with Student's t.
/// (Searle, Casella and McCulloch, Variance Components, 1992, chapter 4; Satterthwaite, Biometrics Bulletin 2, 1946.)
///
/// Both have the same blocks, two or more, and two seeds or more each; `confidence` in (0, 1). Throws Error otherwise.
PairedDifference paired_difference(const BlockLossesBySeed& left, const BlockLossesBySeed& right, double confidence);

}  // namespace engram

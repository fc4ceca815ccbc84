#pragma once
/// Relative effective context length (RECL): how many tokens of context a model makes use of, measured against the best
/// model of its group at each shorter context, so that a model is not credited for gains where others were better
/// already. Dai et al. (2019), section 4.3 and appendix C; [transformer-xl 6.6].

#include <cstdint>
#include <vector>

namespace engram {

/// l_i(c, t): the loss of every model at every position when it has seen the c tokens before it.
struct ContextLosses {
  std::vector<std::int64_t> lengths;  ///< c, increasing; at least two
  /// [model][length][position], nats; positions in the order of the text, the same for all models.
  std::vector<std::vector<std::vector<double>>> losses;
};

/// Of one model and one share r of the positions.
struct RelativeContext {
  std::int64_t length = 0;  ///< the first c from which the next one gains less than the threshold
  bool is_reached = false;  ///< false: it still gains at the last length, so `length` is a lower bound
  /// g_i(c, c') for every c but the last and the c' after it, also those that come after `length`: the relative gain of
  /// perplexity, in [0, 1).
  std::vector<double> gains;
};

/// T(c): the ceil(r n) positions where the best loss b(c, t) of the models is largest, of equal ones the earlier;
/// increasing. `length`: index into lengths. Throws UsageError for a share outside (0, 1].
std::vector<std::size_t> hard_positions(const ContextLosses& table, std::size_t length, double share);

/// f_i(c, c'): the mean over T(c) of min(b(c, t), l_i(c', t)), nats. For c' = c it is the same for all models.
/// `model`, `from` and `to` are indices.
double relative_loss(const ContextLosses& table, std::size_t model, std::size_t from, std::size_t to, double share);

/// For every model of the group: from the first length on, goes to the next while g_i = 1 - exp(f_i(c, c') - f_i(c, c))
/// is at least `threshold`. Throws Error for a table without models or positions, with fewer than two lengths, or whose
/// parts do not fit, and UsageError for a share outside (0, 1].
std::vector<RelativeContext> relative_contexts(const ContextLosses& table, double share, double threshold);

}  // namespace engram

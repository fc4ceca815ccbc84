#pragma once
/// Evaluation of a Transformer-XL against that of a vanilla Transformer of the same size at the same attention length,
/// timed: the paper's table 9. Dai et al. (2019); [transformer-xl 6.7].

#include <cstdint>
#include <string>
#include <vector>

#include "apps/run/config/run_config.hpp"
#include "apps/run/model/runtime.hpp"

namespace engram {

struct VanillaBenchCase {
  std::string name;
  RunConfig config;  ///< of the Transformer-XL family; its memory is set to the attention length
};

/// A way to evaluate a Transformer-XL with a full memory.
struct XlEvaluation {
  std::int64_t segment = 0;  ///< S, tokens of a stream per forward pass, all of which have a loss
  /// Keys, values and positions of the past are kept; otherwise states are, which every segment projects anew, as in
  /// training.
  bool cached = false;
  double seconds = 0;  ///< per token, median
};

/// One attention length.
struct VanillaComparison {
  std::int64_t attention_length = 0;  ///< A
  double vanilla_seconds = 0;         ///< per token: a window of A tokens for one new token, median
  /// States and S = A, states and S = 128, cached and S = A, cached and S = 128.
  std::vector<XlEvaluation> evaluations;

  double slowdown(const XlEvaluation& of) const { return vanilla_seconds / of.seconds; }
};

/// The segment length of the paper's evaluations beside S = A.
constexpr std::int64_t kShortSegment = 128;

/// The vanilla model of a Transformer-XL, with windows of at most `longest` tokens: learned absolute positions, no
/// memory ([transformer-xl 1.8, 1.9]). Throws UsageError as check() does, for heads that are together not as wide as
/// the model among others.
TransformerXlOptions vanilla_of(const TransformerXlOptions& model, std::int64_t longest);

/// `steps` timed forward passes of every way, alternating, for every length, with random f32 weights and tokens and
/// training.batch streams. Throws UsageError for a config of another family, with another kind of positions than
/// relative, or without a vocabulary, and for a length below 1.
std::vector<VanillaComparison> bench_against_vanilla(const VanillaBenchCase& bench,
                                                     const std::vector<std::int64_t>& lengths, Runtime& runtime,
                                                     std::int64_t steps);

}  // namespace engram

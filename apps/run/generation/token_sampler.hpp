#pragma once
/// Choosing the next token from a model's logits. The choice is a function of logits, options, seed and position in
/// the stream alone, so a text can be generated again bit for bit.

#include <cstdint>
#include <span>
#include <vector>

namespace engram {

struct SamplingOptions {
  double temperature = 1;  ///< divides the logits; 0: always the likeliest token, of equal ones the lowest id
  std::int64_t top_k = 0;  ///< only the k likeliest tokens; 0: all
  double top_p = 1;        ///< of these, only the likeliest whose probabilities together reach p, in (0, 1]
  std::uint64_t seed = 1;

  /// Throws UsageError naming the option and its value.
  void check() const;
};

class TokenSampler {
 public:
  /// Throws UsageError when the options are not valid.
  explicit TokenSampler(const SamplingOptions& options);

  /// The id of token number `position`. Throws NotFiniteError when a logit is not finite.
  std::int32_t pick(std::span<const double> logits, std::uint64_t position);

 private:
  SamplingOptions options_;
  std::vector<std::int32_t> order_;  // ids, likeliest first
  std::vector<double> weights_;      // exp((logit - largest) / temperature), in this order
};

}  // namespace engram

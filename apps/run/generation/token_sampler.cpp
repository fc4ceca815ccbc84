#include "apps/run/generation/token_sampler.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.hpp"
#include "core/philox.hpp"

namespace engram {
namespace {

/// A uniform number in [0, 1) with 53 random bits.
double uniform(std::uint64_t seed, std::uint64_t position) {
  // The third word keeps the draws apart from those of dropout and initialisation with the same seed.
  constexpr std::uint32_t kPurpose = 0x67656e65;
  const PhiloxBlock block =
      philox({{static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32), kPurpose, 0}},
             static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  const std::uint64_t bits = (std::uint64_t{block.word[0]} << 32 | block.word[1]) >> 11;
  return std::ldexp(static_cast<double>(bits), -53);
}

}  // namespace

void SamplingOptions::check() const {
  if (!(temperature >= 0 && std::isfinite(temperature)))
    throw UsageError(text("generate: --temperature must be at least 0, got ", temperature));
  if (top_k < 0) throw UsageError(text("generate: --top-k must be at least 0 (0: no limit), got ", top_k));
  if (!(top_p > 0 && top_p <= 1)) throw UsageError(text("generate: --top-p must be in (0, 1], got ", top_p));
}

TokenSampler::TokenSampler(const SamplingOptions& options) : options_(options) { options.check(); }

std::int32_t TokenSampler::pick(std::span<const double> logits, std::uint64_t position) {
  for (std::size_t id = 0; id < logits.size(); ++id)
    if (!std::isfinite(logits[id]))
      throw NotFiniteError(text("generate: the model's logit of token ", id, " is not finite (", logits[id], ")"));
  const auto best = std::max_element(logits.begin(), logits.end());  // the first of equal ones
  if (options_.temperature == 0) return static_cast<std::int32_t>(best - logits.begin());

  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0);
  const auto logit = [&](std::int32_t id) { return logits[static_cast<std::size_t>(id)]; };
  std::ranges::sort(order_,
                    [&](std::int32_t a, std::int32_t b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  if (options_.top_k > 0 && static_cast<std::size_t>(options_.top_k) < order_.size())
    order_.resize(static_cast<std::size_t>(options_.top_k));
  weights_.clear();
  double total = 0;
  for (const std::int32_t id : order_) {
    weights_.push_back(std::exp((logit(id) - *best) / options_.temperature));
    total += weights_.back();
  }
  if (options_.top_p < 1) {
    double kept = 0;
    std::size_t count = 0;
    while (count < weights_.size() && kept < options_.top_p * total) kept += weights_[count++];
    weights_.resize(count);
    total = kept;
  }
  double left = uniform(options_.seed, position) * total;
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    left -= weights_[i];
    if (left < 0) return order_[i];
  }
  // Rounding let the sum of the weights fall short of the total.
  return order_[weights_.size() - 1];
}

}  // namespace engram

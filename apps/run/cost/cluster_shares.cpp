#include "apps/run/cost/cluster_shares.hpp"

#include <algorithm>
#include <cmath>

#include "core/philox.hpp"

namespace engram {
namespace {

/// For every word, the sum of all weights up to its own.
std::vector<double> cumulated_weights(std::int64_t vocabulary) {
  std::vector<double> sums(static_cast<std::size_t>(vocabulary));
  double sum = 0;
  for (std::size_t word = 0; word < sums.size(); ++word)
    sums[word] = sum += std::pow(static_cast<double>(word + 1), -kRankExponent);
  return sums;
}

}  // namespace

std::vector<double> assumed_shares(std::span<const std::int64_t> cutoffs, std::int64_t vocabulary) {
  const std::vector<double> sums = cumulated_weights(vocabulary);
  std::vector<double> shares;
  double before = 0;
  for (std::size_t i = 0; i <= cutoffs.size(); ++i) {
    const std::int64_t end = i < cutoffs.size() ? cutoffs[i] : vocabulary;
    const double until = sums[static_cast<std::size_t>(end) - 1] / sums.back();
    shares.push_back(until - before);
    before = until;
  }
  return shares;
}

std::vector<double> counted_shares(std::span<const std::int64_t> cutoffs, data::TokenView tokens) {
  std::vector<double> shares(cutoffs.size() + 1);
  for (std::int64_t i = 0; i < tokens.size(); ++i)
    ++shares[static_cast<std::size_t>(std::ranges::upper_bound(cutoffs, tokens[i]) - cutoffs.begin())];
  for (double& share : shares) share /= static_cast<double>(tokens.size());
  return shares;
}

std::vector<std::int32_t> ranked_tokens(std::int64_t count, std::int64_t vocabulary, std::uint64_t seed) {
  const std::vector<double> sums = cumulated_weights(vocabulary);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const PhiloxBlock block = philox({{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32), 0, 0}},
                                     static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
    const double place = std::ldexp(static_cast<double>(block.word[0]), -32) * sums.back();
    tokens[i] = static_cast<std::int32_t>(std::ranges::upper_bound(sums, place) - sums.begin());
  }
  return tokens;
}

}  // namespace engram

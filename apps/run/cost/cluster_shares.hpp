#pragma once
/// How many of a text's words are in each cluster of its vocabulary: what the cost of adaptive input and softmax
/// depends on.

#include <cstdint>
#include <span>
#include <vector>

#include "apps/data/files/token_view.hpp"

namespace engram {

/// What is assumed of word frequencies where no text is known: that of rank r is in proportion to r^-1.15. Zipf's law
/// has the exponent 1; large texts of words fall more steeply.
inline constexpr double kRankExponent = 1.15;

/// Of clusters 0 .. K, by kRankExponent; they add up to 1. Cut-offs increase and are below the vocabulary.
std::vector<double> assumed_shares(std::span<const std::int64_t> cutoffs, std::int64_t vocabulary);
/// Shares of the clusters, counted in a text of at least one token.
std::vector<double> counted_shares(std::span<const std::int64_t> cutoffs, data::TokenView tokens);

/// Tokens that are drawn by kRankExponent, the same for the same seed on every machine.
std::vector<std::int32_t> ranked_tokens(std::int64_t count, std::int64_t vocabulary, std::uint64_t seed);

}  // namespace engram

#include "apps/run/evaluation/neural_cache.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.hpp"

namespace engram {
namespace {

/// In several sums at once, which processors add up side by side; always in the same order.
double dot(const double* a, const double* b, std::size_t count) {
  constexpr std::size_t kSums = 16;
  std::array<double, kSums> sums{};
  std::size_t i = 0;
  for (; i + kSums <= count; i += kSums)
    for (std::size_t lane = 0; lane < kSums; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  double sum = 0;
  for (; i < count; ++i) sum += a[i] * b[i];
  for (const double part : sums) sum += part;
  return sum;
}

}  // namespace

void NeuralCacheOptions::check(std::string_view command) const {
  if (positions < 0) throw UsageError(text(command, ": --cache must be at least 0, got ", positions));
  // Its products with dot products of states are finite.
  constexpr double kSharpest = 1e9;
  if (!(theta >= 0 && theta <= kSharpest))
    throw UsageError(text(command, ": --cache-theta must be from 0 to ", kSharpest, ", got ", theta));
  if (!(lambda >= 0 && lambda < 1)) throw UsageError(text(command, ": --cache-lambda must be in [0, 1), got ", lambda));
}

NeuralCache::NeuralCache(const NeuralCacheOptions& options, std::int64_t width)
    : theta_(options.theta),
      lambda_(options.lambda),
      most_(static_cast<std::size_t>(options.positions)),
      width_(static_cast<std::size_t>(width)) {}

double NeuralCache::loss(std::span<const double> vector, std::int32_t word, double nll) {
  if (size_ == 0 || lambda_ == 0) return nll;
  weights_.resize(size_);
  for (std::size_t i = 0; i < size_; ++i) weights_[i] = theta_ * dot(vector.data(), &vectors_[i * width_], width_);
  const double largest = *std::ranges::max_element(weights_);
  double all = 0, of_word = 0;
  for (std::size_t i = 0; i < size_; ++i) {
    const double weight = std::exp(weights_[i] - largest);
    all += weight;
    if (words_[i] == word) of_word += weight;
  }
  const double seen = lambda_ * of_word / all;
  // Beyond this exp(-nll) is 0, and a word that was not seen would cost infinitely much.
  constexpr double kMost = 700;
  if (nll > kMost && seen == 0) return nll - std::log1p(-lambda_);
  return -std::log((1 - lambda_) * std::exp(-nll) + seen);
}

void NeuralCache::push(std::span<const double> vector, std::int32_t word) {
  if (most_ == 0) return;
  if (next_ == words_.size()) {
    vectors_.resize(vectors_.size() + width_);
    words_.push_back(0);
  }
  std::ranges::copy(vector, vectors_.begin() + static_cast<std::ptrdiff_t>(next_ * width_));
  words_[next_] = word;
  size_ = std::max(size_, next_ + 1);
  next_ = (next_ + 1) % most_;
}

void StreamCaches::apply(const data::Block& block, std::span<const double> vectors, std::span<double> losses) {
  const std::size_t width = vectors.size() / losses.size();
  const auto rows = static_cast<std::size_t>(block.rows), columns = losses.size() / rows;
  std::vector<NeuralCache>& streams = streams_[block.first_row];
  if (streams.empty()) streams.assign(rows, NeuralCache(options_, static_cast<std::int64_t>(width)));
  if (streams.size() != rows)
    throw Error(text("cache: every block must have ", streams.size(), " streams, got ", rows));
  for (std::size_t row = 0; row < rows; ++row) {
    NeuralCache& cache = streams[row];
    if (block.zero_caches) cache.reset();
    for (std::size_t i = row * columns; i < (row + 1) * columns; ++i) {
      if (block.scored[i] == 0) continue;
      if (!block.preceding.empty() && block.preceding[i] == 0) cache.reset();
      const auto vector = vectors.subspan(i * width, width);
      losses[i] = cache.loss(vector, block.targets[i], losses[i]);
      cache.push(vector, block.targets[i]);
    }
  }
}

}  // namespace engram

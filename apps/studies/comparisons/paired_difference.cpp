#include "apps/studies/comparisons/paired_difference.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "apps/studies/comparisons/student_t.hpp"
#include "core/error.hpp"

namespace engram {
namespace {

double mean_of(const std::vector<double>& numbers) {
  double sum = 0;
  for (const double number : numbers) sum += number;
  return sum / static_cast<double>(numbers.size());
}

/// With one degree of freedom less than there are numbers.
double variance_of(const std::vector<double>& numbers) {
  const double mean = mean_of(numbers);
  double sum = 0;
  for (const double number : numbers) sum += (number - mean) * (number - mean);
  return sum / static_cast<double>(numbers.size() - 1);
}

/// The parts of one variant.
struct VariantParts {
  std::vector<double> by_block;  ///< means over seeds
  double mean = 0;
  double seeds = 0;     ///< A_v
  double residual = 0;  ///< E_v
  double seed_freedom = 1, residual_freedom = 1;

  explicit VariantParts(const BlockLossesBySeed& losses);
};

VariantParts::VariantParts(const BlockLossesBySeed& losses) {
  const std::size_t blocks = losses.front().size();
  const auto seed_count = static_cast<double>(losses.size()), block_count = static_cast<double>(blocks);
  std::vector<double> by_seed;
  by_block.assign(blocks, 0);
  for (const std::vector<double>& of_seed : losses) {
    by_seed.push_back(mean_of(of_seed));
    for (std::size_t i = 0; i < blocks; ++i) by_block[i] += of_seed[i] / seed_count;
  }
  mean = mean_of(by_seed);
  double squares = 0;
  for (std::size_t s = 0; s < losses.size(); ++s)
    for (std::size_t i = 0; i < blocks; ++i) {
      const double rest = losses[s][i] - by_seed[s] - by_block[i] + mean;
      squares += rest * rest;
    }
  seed_freedom = seed_count - 1;
  residual_freedom = seed_freedom * (block_count - 1);
  seeds = variance_of(by_seed) / seed_count;
  residual = squares / residual_freedom / (seed_count * block_count);
}

/// Correlation of each number with the next one; 0 where all are alike.
double correlation_of_neighbours(const std::vector<double>& numbers) {
  const double mean = mean_of(numbers);
  double together = 0, alone = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    alone += (numbers[i] - mean) * (numbers[i] - mean);
    if (i > 0) together += (numbers[i] - mean) * (numbers[i - 1] - mean);
  }
  return alone > 0 ? together / alone : 0;
}

void require_blocks(const BlockLossesBySeed& left, const BlockLossesBySeed& right) {
  const std::size_t blocks = left.empty() ? 0 : left.front().size();
  for (const BlockLossesBySeed* side : {&left, &right}) {
    if (side->size() < 2) throw Error(text("paired_difference: there must be two seeds or more, got ", side->size()));
    for (const std::vector<double>& of_seed : *side)
      if (of_seed.size() != blocks || blocks < 2)
        throw Error(text("paired_difference: all must have the same blocks, two or more, got ", blocks, " and ",
                         of_seed.size()));
  }
}

double square(double number) { return number * number; }

}  // namespace

bool PairedDifference::blocks_hang_together() const {
  // The correlation of n independent numbers has a standard deviation of nearly 1 / sqrt(n).
  return neighbours > 2 / std::sqrt(static_cast<double>(blocks));
}

PairedDifference paired_difference(const BlockLossesBySeed& left, const BlockLossesBySeed& right, double confidence) {
  require_blocks(left, right);
  const VariantParts one(left), other(right);
  const std::size_t count = one.by_block.size();
  std::vector<double> differences(count);
  for (std::size_t i = 0; i < count; ++i) differences[i] = one.by_block[i] - other.by_block[i];

  PairedDifference found;
  found.blocks = static_cast<std::int64_t>(count);
  found.difference = one.mean - other.mean;
  found.neighbours = correlation_of_neighbours(differences);
  const double blocks = variance_of(differences) / static_cast<double>(count);
  const double seeds = one.seeds + other.seeds;
  const double variance = std::max({blocks + seeds - one.residual - other.residual, blocks, seeds});
  const double block_freedom = static_cast<double>(count) - 1;
  double spread = square(blocks) / block_freedom;
  double least = block_freedom;
  for (const VariantParts* part : {&one, &other}) {
    spread += square(part->seeds) / part->seed_freedom + square(part->residual) / part->residual_freedom;
    least = std::min(least, part->seed_freedom);
  }
  found.block_error = std::sqrt(blocks);
  found.seed_error = std::sqrt(seeds);
  found.standard_error = std::sqrt(variance);
  // Models that are alike to the bit have no variance, and no doubt.
  found.freedom = spread > 0 ? std::max(least, square(variance) / spread) : block_freedom;
  const double reach = variance > 0 ? student_bound(confidence, found.freedom) * found.standard_error : 0;
  found.low = found.difference - reach;
  found.high = found.difference + reach;
  return found;
}

}  // namespace engram

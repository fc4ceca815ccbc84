#include "tests/reference/adaptive_tokens.hpp"

#include <cmath>

namespace engram::reference {
namespace {

/// logits to ln of their softmax
std::vector<double> log_softmax(std::vector<double> logits) {
  double sum = 0, largest = logits.at(0);
  for (const double logit : logits) largest = std::max(largest, logit);
  for (const double logit : logits) sum += std::exp(logit - largest);
  for (double& logit : logits) logit -= largest + std::log(sum);
  return logits;
}

/// (M^T h) for M [d, n]
std::vector<double> transposed_times(const Array64& matrix, const std::vector<double>& h) {
  if (!matrix.given()) return h;
  std::vector<double> result(static_cast<std::size_t>(matrix.axis(1)), 0.0);
  for (std::int64_t row = 0; row < matrix.axis(0); ++row)
    for (std::int64_t column = 0; column < matrix.axis(1); ++column)
      result[std::size_t(column)] += matrix.at(row, column) * h.at(std::size_t(row));
  return result;
}

/// (M s + b) appended to logits
void append_product(const Array64& matrix, const Array64& bias, const std::vector<double>& s,
                    std::vector<double>& logits) {
  for (std::int64_t row = 0; row < matrix.axis(0); ++row) {
    double sum = bias.at(row);
    for (std::int64_t column = 0; column < matrix.axis(1); ++column)
      sum += matrix.at(row, column) * s.at(std::size_t(column));
    logits.push_back(sum);
  }
}

}  // namespace

std::vector<double> AdaptiveTokens::embedding(std::int64_t word) const {
  std::size_t cluster = 0;
  std::int64_t first = 0;
  for (; cluster < cutoffs.size() && word >= cutoffs[cluster]; ++cluster) first = cutoffs[cluster];
  const Array64& projection = projections.at(cluster);
  std::vector<double> vector;
  if (!projection.given()) {
    const std::int64_t size = tables.at(cluster).axis(1);
    for (std::int64_t i = 0; i < size; ++i)
      vector.push_back(std::sqrt(double(size)) * tables.at(cluster).at(word - first, i));
    return vector;
  }
  for (std::int64_t row = 0; row < projection.axis(0); ++row) {
    double sum = 0;
    for (std::int64_t i = 0; i < projection.axis(1); ++i)
      sum += projection.at(row, i) * tables.at(cluster).at(word - first, i);
    vector.push_back(std::sqrt(double(projection.axis(0))) * sum);
  }
  return vector;
}

std::vector<double> AdaptiveTokens::log_probabilities(const std::vector<double>& h) const {
  const std::size_t tails = cutoffs.size();
  const std::vector<double> s = transposed_times(out_projections.at(0), h);
  std::vector<double> head;
  append_product(out_tables.at(0), biases.at(0), s, head);
  if (tails > 0) append_product(cluster_weight, cluster_bias, s, head);
  head = log_softmax(head);
  const std::size_t frequent = std::size_t(out_tables.at(0).axis(0));
  std::vector<double> result(head.begin(), head.begin() + std::ptrdiff_t(frequent));
  for (std::size_t i = 1; i <= tails; ++i) {
    std::vector<double> tail;
    append_product(out_tables.at(i), biases.at(i), transposed_times(out_projections.at(i), h), tail);
    const std::size_t slot = natural_order ? i - 1 : tails - i;
    for (const double log_share : log_softmax(tail)) result.push_back(head.at(frequent + slot) + log_share);
  }
  return result;
}

}  // namespace engram::reference

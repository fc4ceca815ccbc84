#pragma once
/// Exercise 12: docs/exercises/12_product_keys.md.

#include <span>
#include <utility>
#include <vector>

namespace engram::exercises {

/// Scores of n times n slots: that of slot (i, j) is first[i] + second[j].
class PairScores {
 public:
  /// Both of one length, n.
  PairScores(std::vector<double> first, std::vector<double> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  std::span<const double> first() const { return first_; }
  std::span<const double> second() const { return second_; }
  /// The score of slot (i, j). Counted: the point is to ask for few of the n times n.
  double of(int i, int j) const {
    ++asked_;
    return first_.at(static_cast<std::size_t>(i)) + second_.at(static_cast<std::size_t>(j));
  }
  int asked() const { return asked_; }

 private:
  std::vector<double> first_, second_;
  mutable int asked_ = 0;
};

/// The k slots with the largest scores, the best first, as ids i * n + j; 1 <= k <= n. Asks for at most k * k scores of
/// slots. No two scores are equal.
std::vector<int> best_slots(const PairScores& scores, int k);

}  // namespace engram::exercises

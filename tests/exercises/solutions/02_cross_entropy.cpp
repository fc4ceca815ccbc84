#include "tests/exercises/02_cross_entropy.hpp"

#include <algorithm>
#include <cmath>

namespace engram::exercises {

double cross_entropy(const Matrix& logits, std::span<const int> targets, Matrix& dlogits) {
  const int rows = logits.rows();
  double loss = 0;
  for (int r = 0; r < rows; ++r) {
    const double largest = *std::ranges::max_element(logits.row(r));
    double sum = 0;
    for (const double score : logits.row(r)) sum += std::exp(score - largest);
    const int target = targets[static_cast<std::size_t>(r)];
    loss += (std::log(sum) - (logits(r, target) - largest)) / rows;
    for (int c = 0; c < logits.columns(); ++c) {
      const double probability = std::exp(logits(r, c) - largest) / sum;
      dlogits(r, c) = (probability - (c == target ? 1 : 0)) / rows;
    }
  }
  return loss;
}

}  // namespace engram::exercises

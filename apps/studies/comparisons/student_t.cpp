#include "apps/studies/comparisons/student_t.hpp"

#include <cmath>

namespace engram {

double student_coverage(double bound, double freedom) {
  // The density of t is proportional to (1 + t^2 / f)^(-(f + 1) / 2). With t = sqrt(f) tan(a) that is cos(a)^(f - 1)
  // da, which is smooth where the rule of Simpson is used, and its integral up to pi / 2 is B(1/2, f/2) / 2.
  constexpr int kPieces = 400;
  const double end = std::atan(bound / std::sqrt(freedom));
  const double width = end / kPieces;
  const auto density = [freedom](double angle) { return std::exp((freedom - 1) * std::log(std::cos(angle))); };
  double sum = 1 + density(end);
  for (int i = 1; i < kPieces; ++i) sum += (i % 2 == 1 ? 4 : 2) * density(width * i);
  const double log_beta = std::lgamma(0.5) + std::lgamma(freedom / 2) - std::lgamma((freedom + 1) / 2);
  return 2 * sum * width / 3 / std::exp(log_beta);
}

double student_bound(double coverage, double freedom) {
  double low = 0, high = 1;
  while (student_coverage(high, freedom) < coverage) high *= 2;
  for (int i = 0; i < 45; ++i) {
    const double middle = (low + high) / 2;
    (student_coverage(middle, freedom) < coverage ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace engram

#include "tests/exercises/06_differences.hpp"

#include <cstddef>

namespace engram::exercises {

std::vector<double> numeric_gradient(const ScalarFunction& f, std::vector<double> x) {
  constexpr double kStep = 1e-5;
  std::vector<double> gradient(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double middle = x[i];
    x[i] = middle + kStep;
    const double above = f(x);
    x[i] = middle - kStep;
    const double below = f(x);
    x[i] = middle;
    gradient[i] = (above - below) / (2 * kStep);
  }
  return gradient;
}

}  // namespace engram::exercises

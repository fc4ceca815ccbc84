#pragma once
/// Derivatives by central differences in double, and the numbers to try them with, for tests of analytic derivatives.

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "tests/reference/array64.hpp"

namespace engram::reference {

/// (f(x + step) - f(x - step)) / 2 step for every element of x, which `value` must read; x is left as it was.
inline Array64 central_differences(Array64& x, const std::function<double()>& value, double step = 1e-6) {
  Array64 gradient = zeros(x.shape);
  for (std::size_t k = 0; k < x.data.size(); ++k) {
    const double here = x.data[k];
    x.data[k] = here + step;
    const double above = value();
    x.data[k] = here - step;
    const double below = value();
    x.data[k] = here;
    gradient.data[k] = (above - below) / (2 * step);
  }
  return gradient;
}

inline double norm(const Array64& x) {
  double squares = 0;
  for (const double value : x.data) squares += value * value;
  return std::sqrt(squares);
}

/// Norm of the difference. Throws std::invalid_argument unless the shapes agree.
inline double distance_between(const Array64& a, const Array64& b) {
  require(a.shape == b.shape, "distance_between: equal shapes");
  double squares = 0;
  for (std::size_t k = 0; k < a.data.size(); ++k) squares += (a.data[k] - b.data[k]) * (a.data[k] - b.data[k]);
  return std::sqrt(squares);
}

/// Uniform numbers in [-1, 1) from the bits of the generator, the same with every standard library.
class RandomArrays {
 public:
  explicit RandomArrays(std::uint64_t seed) : bits_(seed) {}
  double number() { return static_cast<double>(bits_() >> 11) * 0x1p-52 - 1; }
  std::int64_t below(std::int64_t bound) {
    return static_cast<std::int64_t>(bits_() % static_cast<std::uint64_t>(bound));
  }
  Array64 array(std::vector<std::int64_t> shape, double factor = 1) {
    Array64 result = zeros(std::move(shape));
    for (double& value : result.data) value = factor * number();
    return result;
  }

 private:
  std::mt19937_64 bits_;
};

}  // namespace engram::reference

#pragma once
/// Inputs of checks, and the slopes that gradients are compared with.

#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "tests/exercises/matrix.hpp"

namespace engram::exercises {

/// Numbers between -1 and 1 without a pattern that a mistake could hide in.
inline std::vector<double> some_numbers(std::size_t count, double seed) {
  std::vector<double> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = std::sin(12.9898 * (static_cast<double>(i) + 1) + 78.233 * seed);
  return numbers;
}

inline Matrix some_matrix(int rows, int columns, double seed) {
  return Matrix(rows, columns, some_numbers(static_cast<std::size_t>(rows) * columns, seed));
}

inline double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Derivatives of f by its numbers, by differences.
inline std::vector<double> slopes(const std::function<double(const std::vector<double>&)>& f, std::vector<double> x) {
  std::vector<double> result(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double middle = x[i], h = 1e-5;
    x[i] = middle + h;
    const double above = f(x);
    x[i] = middle - h;
    result[i] = (above - f(x)) / (2 * h);
    x[i] = middle;
  }
  return result;
}

/// The same for a matrix.
inline Matrix slopes(const std::function<double(const Matrix&)>& f, const Matrix& x) {
  return Matrix(x.rows(), x.columns(),
                slopes([&](const std::vector<double>& numbers) { return f(Matrix(x.rows(), x.columns(), numbers)); },
                       x.numbers()));
}

}  // namespace engram::exercises

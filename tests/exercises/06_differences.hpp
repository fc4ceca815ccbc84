#pragma once
/// Exercise 6: docs/exercises/06_differences.md.

#include <functional>
#include <span>
#include <vector>

namespace engram::exercises {

using ScalarFunction = std::function<double(std::span<const double> x)>;

/// Derivatives of f by every element of x, by central differences: two calls of f for each. They must be right to one
/// part in 100 million for a smooth f and x of the size of 1.
std::vector<double> numeric_gradient(const ScalarFunction& f, std::vector<double> x);

}  // namespace engram::exercises

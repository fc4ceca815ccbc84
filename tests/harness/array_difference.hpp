#pragma once
/// How far two lists of arrays are apart, told as lines that name the worst place.

#include <span>
#include <string>
#include <vector>

#include "tests/reference/array64.hpp"

namespace engram::harness {

using reference::Array64;

/// Every element: |got - wanted| <= tolerance * the largest |wanted| of the array. Equal infinities agree, NaN never.
std::vector<std::string> compare_elements(const std::string& what, std::span<const Array64> got,
                                          std::span<const Array64> wanted, double tolerance);
/// Every array: |got - wanted| <= tolerance * max(|wanted|, negligible * sqrt(elements)), Euclidean norms.
std::vector<std::string> compare_norms(const std::string& what, std::span<const Array64> got,
                                       std::span<const Array64> wanted, double tolerance, double negligible);
/// The same with a tolerance for each array.
std::vector<std::string> compare_norms(const std::string& what, std::span<const Array64> got,
                                       std::span<const Array64> wanted, const std::vector<double>& tolerances,
                                       double negligible);
/// The same bits.
std::vector<std::string> compare_bits(const std::string& what, std::span<const Array64> got,
                                      std::span<const Array64> wanted);

}  // namespace engram::harness

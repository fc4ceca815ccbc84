#include "tests/harness/array_difference.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/error.hpp"

namespace engram::harness {
namespace {

std::string shape_text(const Array64& x) {
  std::string list = "[";
  for (const std::int64_t size : x.shape) list += (list.size() > 1 ? ", " : "") + std::to_string(size);
  return list + "]";
}

double distance(double got, double wanted) {
  if (got == wanted) return 0;  // equal infinities
  const double difference = std::abs(got - wanted);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

// Calls compare(got, wanted, place in the list) for arrays of equal shape and adds a line for the others.
template <class Compare>
std::vector<std::string> for_each_pair(const std::string& what, std::span<const Array64> got,
                                       std::span<const Array64> wanted, Compare compare) {
  if (got.size() != wanted.size()) return {text(what, ": there must be ", wanted.size(), " of them, got ", got.size())};
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const std::string label = text(what, " ", i);
    if (got[i].shape != wanted[i].shape)
      lines.push_back(text(label, ": shape must be ", shape_text(wanted[i]), ", got ", shape_text(got[i])));
    else if (const std::string line = compare(got[i], wanted[i], i); !line.empty())
      lines.push_back(text(label, " ", shape_text(got[i]), ": ", line));
  }
  return lines;
}

}  // namespace

std::vector<std::string> compare_elements(const std::string& what, std::span<const Array64> got,
                                          std::span<const Array64> wanted, double tolerance) {
  return for_each_pair(what, got, wanted, [&](const Array64& a, const Array64& b, std::size_t) -> std::string {
    double largest = std::numeric_limits<double>::min(), worst = 0;
    std::size_t place = 0;
    for (std::size_t k = 0; k < b.data.size(); ++k) {
      if (std::isfinite(b.data[k])) largest = std::max(largest, std::abs(b.data[k]));
      if (distance(a.data[k], b.data[k]) <= worst) continue;
      worst = distance(a.data[k], b.data[k]);
      place = k;
    }
    if (worst <= tolerance * largest) return "";
    return text("element ", place, " must be ", b.data[place], ", got ", a.data[place], ", difference over largest ",
                worst / largest, " > ", tolerance);
  });
}

std::vector<std::string> compare_norms(const std::string& what, std::span<const Array64> got,
                                       std::span<const Array64> wanted, double tolerance, double negligible) {
  return compare_norms(what, got, wanted, std::vector<double>(got.size(), tolerance), negligible);
}

std::vector<std::string> compare_norms(const std::string& what, std::span<const Array64> got,
                                       std::span<const Array64> wanted, const std::vector<double>& tolerances,
                                       double negligible) {
  return for_each_pair(what, got, wanted, [&](const Array64& a, const Array64& b, std::size_t i) -> std::string {
    double squares = 0, difference = 0;
    for (std::size_t k = 0; k < b.data.size(); ++k) {
      if (std::isfinite(b.data[k])) squares += b.data[k] * b.data[k];
      const double d = distance(a.data[k], b.data[k]);
      difference += d * d;
    }
    const double scale = std::max(std::sqrt(squares), negligible * std::sqrt(static_cast<double>(b.data.size())));
    const double relative = difference == 0 ? 0 : std::sqrt(difference) / scale;
    if (relative <= tolerances.at(i)) return "";
    return text("norm of the difference over norm is ", relative, " > ", tolerances.at(i), " (norm ",
                std::sqrt(squares), ")");
  });
}

std::vector<std::string> compare_bits(const std::string& what, std::span<const Array64> got,
                                      std::span<const Array64> wanted) {
  return for_each_pair(what, got, wanted, [&](const Array64& a, const Array64& b, std::size_t) -> std::string {
    for (std::size_t k = 0; k < a.data.size(); ++k)
      if (std::memcmp(&a.data[k], &b.data[k], sizeof(double)) != 0)
        return text("element ", k, " must have the same bits, got ", a.data[k], " and ", b.data[k], ", difference ",
                    a.data[k] - b.data[k]);
    return "";
  });
}

}  // namespace engram::harness

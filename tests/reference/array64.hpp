#pragma once
/// The only data type of the executable definitions in this folder: a shape and its numbers in double, row-major.
/// Nothing here is shared with the framework, so that a mistake in one cannot hide the same mistake in the other;
/// every access through at() is checked, because these definitions are read and trusted, not fast.

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace engram::reference {

/// Throws std::invalid_argument saying `rule` unless it holds.
inline void require(bool holds, const char* rule) {
  if (!holds) throw std::invalid_argument(std::string("reference: ") + rule);
}

/// A default-made Array64 (no shape, no data) stands for "not given" wherever an input is optional.
struct Array64 {
  std::vector<std::int64_t> shape;
  std::vector<double> data;

  std::int64_t count() const { return static_cast<std::int64_t>(data.size()); }
  int rank() const { return static_cast<int>(shape.size()); }
  bool given() const { return !shape.empty(); }

  /// Size of an axis; negative counts from the end. Throws std::invalid_argument when there is no such axis.
  std::int64_t axis(int index) const {
    const int from_start = index < 0 ? index + rank() : index;
    require(from_start >= 0 && from_start < rank(), "axis: no such axis");
    return shape[static_cast<std::size_t>(from_start)];
  }

  /// The element at one index per axis (one to five of them). Throws std::invalid_argument outside the shape.
  template <class... Index>
  double& at(Index... index) {
    return data[offset(index...)];
  }
  template <class... Index>
  double at(Index... index) const {
    return data[offset(index...)];
  }

 private:
  template <class... Index>
  std::size_t offset(Index... index) const {
    static_assert(sizeof...(Index) >= 1 && sizeof...(Index) <= 5, "one to five axes");
    require(sizeof...(Index) == shape.size(), "at: one index for every axis");
    const std::array<std::int64_t, sizeof...(Index)> indices{static_cast<std::int64_t>(index)...};
    std::int64_t flat = 0;
    for (std::size_t a = 0; a < indices.size(); ++a) {
      require(indices[a] >= 0 && indices[a] < shape[a], "at: index outside the shape");
      flat = flat * shape[a] + indices[a];
    }
    return static_cast<std::size_t>(flat);
  }
};

/// Product of the sizes, 1 for no axes.
inline std::int64_t element_count(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return count;
}

inline Array64 zeros(std::vector<std::int64_t> shape) {
  const auto count = static_cast<std::size_t>(element_count(shape));
  return {std::move(shape), std::vector<double>(count, 0.0)};
}

inline Array64 constant(double value, std::vector<std::int64_t> shape) {
  const auto count = static_cast<std::size_t>(element_count(shape));
  return {std::move(shape), std::vector<double>(count, value)};
}

/// Throws std::invalid_argument when the values do not fill the shape.
inline Array64 array(std::vector<std::int64_t> shape, std::vector<double> values) {
  require(element_count(shape) == static_cast<std::int64_t>(values.size()), "array: one value for every element");
  return {std::move(shape), std::move(values)};
}

/// Element k (flat, row-major) is 0.5 sin(a + 0.7 k): the inputs of the golden tests (all-attention, T4 and T13).
inline Array64 fill(double a, std::vector<std::int64_t> shape) {
  Array64 result = zeros(std::move(shape));
  for (std::size_t k = 0; k < result.data.size(); ++k)
    result.data[k] = 0.5 * std::sin(a + 0.7 * static_cast<double>(k));
  return result;
}

}  // namespace engram::reference

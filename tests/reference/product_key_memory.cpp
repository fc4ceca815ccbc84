#include "tests/reference/product_key_memory.hpp"

#include <cmath>

#include "tests/reference/product_keys.hpp"

namespace engram::reference {
MemoryRead product_key_memory(const Array64& queries, const Array64& keys, const Array64& values, std::int64_t k) {
  constexpr double kGap = 1e-9;  // of scores, far above what roundings change
  const std::int64_t rows = queries.axis(0), heads = keys.axis(0), width = values.axis(1);
  const ProductKeyTopK found = product_key_top_k(queries, keys, k, kGap);
  MemoryRead read{zeros({rows, width}), found.ids, found.scores, zeros({rows, heads, k})};
  for (std::int64_t query = 0; query < rows * heads; ++query) {
    const std::size_t first = static_cast<std::size_t>(query * k);
    const std::size_t y = static_cast<std::size_t>(query / heads * width);
    double sum = 0;
    for (std::size_t j = first; j < first + static_cast<std::size_t>(k); ++j)
      sum += read.weights.data[j] = std::exp(found.scores.data[j] - found.scores.data[first]);
    for (std::size_t j = first; j < first + static_cast<std::size_t>(k); ++j) {
      read.weights.data[j] /= sum;
      const auto row = static_cast<std::size_t>(static_cast<std::int64_t>(found.ids.data[j]) * width);
      for (std::size_t c = 0; c < static_cast<std::size_t>(width); ++c)
        read.y.data[y + c] += read.weights.data[j] * values.data[row + c];
    }
  }
  return read;
}

Array64 batch_norm_of_rows(const Array64& x, const Array64& gain, const Array64& bias, double epsilon) {
  const std::int64_t rows = x.axis(0), columns = x.axis(1);
  Array64 y = x;
  for (std::int64_t c = 0; c < columns; ++c) {
    double mean = 0, variance = 0;
    for (std::int64_t r = 0; r < rows; ++r) mean += x.data[static_cast<std::size_t>(r * columns + c)];
    mean /= static_cast<double>(rows);
    for (std::int64_t r = 0; r < rows; ++r)
      variance += std::pow(x.data[static_cast<std::size_t>(r * columns + c)] - mean, 2);
    variance /= static_cast<double>(rows);
    const double scale = gain.data[static_cast<std::size_t>(c)] / std::sqrt(variance + epsilon);
    for (std::int64_t r = 0; r < rows; ++r) {
      double& value = y.data[static_cast<std::size_t>(r * columns + c)];
      value = (value - mean) * scale + bias.data[static_cast<std::size_t>(c)];
    }
  }
  return y;
}

}  // namespace engram::reference

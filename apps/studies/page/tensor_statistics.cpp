#include "apps/studies/page/tensor_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "apps/run/model/checkpoint_format.hpp"
#include "apps/studies/page/packed_series.hpp"
#include "core/bf16.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

template <class T>
std::vector<double> numbers_of(std::span<const std::byte> bytes) {
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(T));
  std::vector<double> converted;
  converted.reserve(numbers.size());
  for (const T number : numbers) {
    if constexpr (std::is_same_v<T, bf16>)
      converted.push_back(static_cast<double>(static_cast<float>(number)));
    else
      converted.push_back(static_cast<double>(number));
  }
  return converted;
}

}  // namespace

TensorStatistics statistics_of(std::string name, std::vector<std::int64_t> shape, const std::vector<double>& numbers) {
  TensorStatistics found{.name = std::move(name), .shape = std::move(shape), .count = std::ssize(numbers)};
  double squares = 0, sum = 0;
  bool first = true;
  for (const double number : numbers) {
    if (!std::isfinite(number)) {
      ++found.not_finite;
      continue;
    }
    squares += number * number;
    sum += number;
    found.least = first ? number : std::min(found.least, number);
    found.most = first ? number : std::max(found.most, number);
    first = false;
  }
  found.norm = std::sqrt(squares);
  found.mean = sum / static_cast<double>(std::max<std::int64_t>(1, found.count - found.not_finite));
  const double width = found.most - found.least;
  for (const double number : numbers) {
    if (!std::isfinite(number)) continue;
    const double place = width > 0 ? (number - found.least) / width * static_cast<double>(kHistogramBins) : 0;
    ++found.histogram[std::min(kHistogramBins - 1, static_cast<std::size_t>(place))];
  }
  return found;
}

std::vector<TensorStatistics> tensor_statistics(const CheckpointFile& file) {
  std::vector<TensorStatistics> all;
  for (const std::string& name : file.names()) {
    if (!is_parameter_name(name)) continue;
    const StoredTensor& tensor = file.at(name);
    const std::span<const std::byte> bytes = file.bytes(tensor);
    std::vector<std::int64_t> shape;
    for (int axis = 0; axis < tensor.shape.rank(); ++axis) shape.push_back(tensor.shape[axis]);
    if (tensor.dtype == DType::f32) all.push_back(statistics_of(name, std::move(shape), numbers_of<float>(bytes)));
    if (tensor.dtype == DType::f64) all.push_back(statistics_of(name, std::move(shape), numbers_of<double>(bytes)));
    if (tensor.dtype == DType::bf16) all.push_back(statistics_of(name, std::move(shape), numbers_of<bf16>(bytes)));
  }
  return all;
}

nlohmann::json json_of(const std::vector<TensorStatistics>& tensors) {
  nlohmann::json list = nlohmann::json::array();
  for (const TensorStatistics& tensor : tensors) {
    const std::vector<double> histogram(tensor.histogram.begin(), tensor.histogram.end());
    list.push_back({{"name", tensor.name},
                    {"shape", tensor.shape},
                    {"count", tensor.count},
                    {"not_finite", tensor.not_finite},
                    {"norm", tensor.norm},
                    {"mean", tensor.mean},
                    {"least", tensor.least},
                    {"most", tensor.most},
                    {"histogram", packed_floats(histogram)}});
  }
  return list;
}

}  // namespace engram

#include "apps/studies/page/tensor_statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "apps/run/model/checkpoint_format.hpp"
#include "apps/studies/page/packed_series.hpp"
#include "core/bf16.hpp"
#include "core/files/json.hpp"

namespace engram {
namespace {

/// Hands over a tensor's numbers one by one. They are copied in small blocks, as they are not aligned.
template <class T, class Take>
void for_each_number(std::span<const std::byte> bytes, const Take& take) {
  constexpr std::size_t kBlock = 4096;
  std::array<T, kBlock> block;
  const std::size_t count = bytes.size() / sizeof(T);
  for (std::size_t done = 0; done < count;) {
    const std::size_t size = std::min(kBlock, count - done);
    std::memcpy(block.data(), bytes.data() + done * sizeof(T), size * sizeof(T));
    for (std::size_t i = 0; i < size; ++i)
      if constexpr (std::is_same_v<T, bf16>)
        take(static_cast<double>(static_cast<float>(block[i])));
      else
        take(static_cast<double>(block[i]));
    done += size;
  }
}

template <class T>
void measure(TensorStatistics& found, std::span<const std::byte> bytes) {
  double squares = 0;
  bool first = true;
  for_each_number<T>(bytes, [&](double number) {
    ++found.count;
    if (!std::isfinite(number)) {
      ++found.not_finite;
      return;
    }
    squares += number * number;
    found.least = first ? number : std::min(found.least, number);
    found.most = first ? number : std::max(found.most, number);
    first = false;
  });
  found.norm = std::sqrt(squares);
  // Halves: the range of f64 may be wider than f64.
  const double half_width = found.most / 2 - found.least / 2;
  for_each_number<T>(bytes, [&](double number) {
    if (!std::isfinite(number)) return;
    const double place =
        half_width > 0 ? (number / 2 - found.least / 2) / half_width * static_cast<double>(kHistogramBins) : 0;
    ++found.histogram[std::min(kHistogramBins - 1, static_cast<std::size_t>(place))];
  });
}

}  // namespace

TensorStatistics statistics_of(std::string name, std::vector<std::int64_t> shape, DType dtype,
                               std::span<const std::byte> bytes) {
  TensorStatistics found{.name = std::move(name), .shape = std::move(shape)};
  if (dtype == DType::f32) measure<float>(found, bytes);
  if (dtype == DType::f64) measure<double>(found, bytes);
  if (dtype == DType::bf16) measure<bf16>(found, bytes);
  return found;
}

std::vector<TensorStatistics> tensor_statistics(const CheckpointFile& file) {
  std::vector<TensorStatistics> all;
  for (const std::string& name : file.names()) {
    if (!is_parameter_name(name)) continue;
    const StoredTensor& tensor = file.at(name);
    if (tensor.dtype != DType::f32 && tensor.dtype != DType::f64 && tensor.dtype != DType::bf16) continue;
    std::vector<std::int64_t> shape;
    for (int axis = 0; axis < tensor.shape.rank(); ++axis) shape.push_back(tensor.shape[axis]);
    all.push_back(statistics_of(name, std::move(shape), tensor.dtype, file.bytes(tensor)));
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
                    {"least", tensor.least},
                    {"most", tensor.most},
                    {"histogram", packed_floats(histogram)}});
  }
  return list;
}

}  // namespace engram

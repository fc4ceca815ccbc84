#pragma once
/// How the numbers of a checkpoint's tensors are spread.

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "nn/checkpoint.hpp"

namespace engram {

inline constexpr std::size_t kHistogramBins = 64;

struct TensorStatistics {
  std::string name;
  std::vector<std::int64_t> shape;
  std::int64_t count = 0, not_finite = 0;  ///< numbers; not_finite are in nothing below
  double norm = 0, least = 0, most = 0;
  std::array<std::int64_t, kHistogramBins> histogram{};  ///< equal parts of [least, most]; all in the first if equal
};

/// Of the parameters, by name. Integers are left out.
std::vector<TensorStatistics> tensor_statistics(const CheckpointFile& file);
/// Of one tensor: its numbers as they lie in a file, f32, f64 or bf16. They are read twice, and nothing is copied
/// whole.
TensorStatistics statistics_of(std::string name, std::vector<std::int64_t> shape, DType dtype,
                               std::span<const std::byte> bytes);

nlohmann::json json_of(const std::vector<TensorStatistics>& tensors);

}  // namespace engram

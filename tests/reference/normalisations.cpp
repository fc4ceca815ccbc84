#include "tests/reference/normalisations.hpp"

namespace engram::reference {
namespace {

// [..., C] as [rows, C].
Array64 as_matrix(const Array64& x) {
  const std::int64_t width = x.axis(-1);
  return {{width == 0 ? 0 : x.count() / width, width}, x.data};
}

bool takes_part(const Array64& mask, std::int64_t row) { return !mask.given() || mask.at(row) != 0; }

Array64 normalised(const Array64& x, const Array64& gain, const Array64& bias, const Array64& mean,
                   const Array64& variance, const Array64& mask, double epsilon) {
  Array64 y = as_matrix(x);
  for (std::int64_t r = 0; r < y.axis(0); ++r)
    for (std::int64_t c = 0; c < y.axis(1); ++c)
      y.at(r, c) = takes_part(mask, r)
                       ? gain.at(c) * (y.at(r, c) - mean.at(c)) / std::sqrt(variance.at(c) + epsilon) + bias.at(c)
                       : 0.0;
  y.shape = x.shape;
  return y;
}

}  // namespace

BatchNorm batch_norm_training(const Array64& x, const Array64& gain, const Array64& bias, const Array64& running_mean,
                              const Array64& running_variance, const Array64& mask, const BatchNormRule& rule) {
  const Array64 rows = as_matrix(x);
  const std::int64_t width = rows.axis(1);
  BatchNorm result{.y = {}, .running_mean = running_mean, .running_variance = running_variance};
  Array64 mean = zeros({width}), variance = zeros({width});
  double count = 0;
  for (std::int64_t r = 0; r < rows.axis(0); ++r) count += takes_part(mask, r) ? 1 : 0;
  for (std::int64_t c = 0; c < width && count > 0; ++c) {
    for (std::int64_t r = 0; r < rows.axis(0); ++r)
      if (takes_part(mask, r)) mean.at(c) += rows.at(r, c);
    mean.at(c) /= count;
    for (std::int64_t r = 0; r < rows.axis(0); ++r)
      if (takes_part(mask, r)) variance.at(c) += (rows.at(r, c) - mean.at(c)) * (rows.at(r, c) - mean.at(c));
    variance.at(c) /= count;
    result.running_mean.at(c) = (1 - rule.momentum) * running_mean.at(c) + rule.momentum * mean.at(c);
    result.running_variance.at(c) =
        (1 - rule.momentum) * running_variance.at(c) + rule.momentum * variance.at(c) * count / (count - 1);
  }
  result.y = normalised(x, gain, bias, mean, variance, mask, rule.epsilon);
  return result;
}

Array64 batch_norm_inference(const Array64& x, const Array64& gain, const Array64& bias, const Array64& running_mean,
                             const Array64& running_variance, const Array64& mask, const BatchNormRule& rule) {
  return normalised(x, gain, bias, running_mean, running_variance, mask, rule.epsilon);
}

Array64 rms_norm(const Array64& x, const Array64& gain, double epsilon) {
  Array64 y = as_matrix(x);
  for (std::int64_t r = 0; r < y.axis(0); ++r) {
    double square = 0;
    for (std::int64_t c = 0; c < y.axis(1); ++c) square += y.at(r, c) * y.at(r, c);
    square /= static_cast<double>(y.axis(1));
    for (std::int64_t c = 0; c < y.axis(1); ++c)
      y.at(r, c) = (gain.given() ? gain.at(c) : 1.0) * y.at(r, c) / std::sqrt(square + epsilon);
  }
  y.shape = x.shape;
  return y;
}

Array64 l2_norm(const Array64& x) {
  Array64 y = as_matrix(x);
  for (std::int64_t r = 0; r < y.axis(0); ++r) {
    double square = 0;
    for (std::int64_t c = 0; c < y.axis(1); ++c) square += y.at(r, c) * y.at(r, c);
    if (square == 0) continue;
    for (std::int64_t c = 0; c < y.axis(1); ++c) y.at(r, c) /= std::sqrt(square);
  }
  y.shape = x.shape;
  return y;
}

}  // namespace engram::reference

#include "apps/run/cost/sliding_window_cost.hpp"

namespace engram {

double sliding_window_flops(const LayerSizes& layer, std::int64_t attention_length, FutureKeys future) {
  const auto D = static_cast<double>(layer.width), F = static_cast<double>(layer.inner);
  const auto A = static_cast<double>(attention_length);
  return A * (8 * D * D + 4 * D * F) + (future == FutureKeys::computed ? 4 : 2) * A * A * D;
}

double released_xl_flops(const LayerSizes& layer, std::int64_t attention_length, std::int64_t segment) {
  const auto D = static_cast<double>(layer.width), F = static_cast<double>(layer.inner);
  const auto S = static_cast<double>(segment), K = static_cast<double>(attention_length + segment);
  return 8 * D * D * K / S + 2 * D * D + 4 * D * F + 6 * K * D;
}

double cached_xl_flops(const LayerSizes& layer, std::int64_t attention_length) {
  const auto D = static_cast<double>(layer.width), F = static_cast<double>(layer.inner);
  return 8 * D * D + 4 * D * F + 6 * static_cast<double>(attention_length) * D;
}

std::optional<double> published_slowdown(std::int64_t attention_length) {
  switch (attention_length) {
    case 800:
      return 363;
    case 1800:
      return 773;
    case 2800:
      return 1409;
    case 3800:
      return 1874;
    default:
      return std::nullopt;
  }
}

}  // namespace engram

#include "tests/reference/span_rules.hpp"

#include <algorithm>
#include <cmath>

#include "tests/reference/array64.hpp"

namespace engram::reference {

double raw_span_mask(std::int64_t distance, double span, std::int64_t span_length, double ramp,
                     std::int64_t mask_offset) {
  const double x = static_cast<double>(distance - 1 + mask_offset);
  return (ramp + static_cast<double>(span_length) * span - x) / ramp;
}

double span_mask(std::int64_t distance, double span, std::int64_t span_length, double ramp, std::int64_t mask_offset) {
  return std::clamp(raw_span_mask(distance, span, span_length, ramp, mask_offset), 0.0, 1.0);
}

SpanWindow span_window(const std::vector<double>& spans, std::int64_t span_length, std::int64_t ramp) {
  require(!spans.empty() && span_length >= 1 && ramp >= 1, "span_window: heads, S >= 1 and R >= 1");
  const double longest = *std::max_element(spans.begin(), spans.end());
  const auto reach = static_cast<std::int64_t>(std::ceil(longest * static_cast<double>(span_length))) + ramp;
  SpanWindow result{};
  result.size = std::clamp<std::int64_t>(reach, 0, span_length);
  result.trim = 64 * (std::min(span_length - 1, span_length - result.size) / 64);
  result.window = span_length - result.trim;
  result.cache = std::min(span_length, result.window + 64);
  return result;
}

double span_loss(double lambda, std::int64_t span_length, const std::vector<std::vector<double>>& spans) {
  double means = 0;
  for (const std::vector<double>& layer : spans) {
    double total = 0;
    for (const double span : layer) total += span;
    means += total / static_cast<double>(layer.size());
  }
  return lambda * static_cast<double>(span_length) * means;
}

}  // namespace engram::reference

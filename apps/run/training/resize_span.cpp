#include "apps/run/training/resize_span.hpp"

#include <algorithm>
#include <string_view>

#include "apps/run/model/checkpoint_format.hpp"
#include "core/host_copy.hpp"

namespace engram {
namespace {

/// "layers.0.attention.span" of "optimizer/layers.0.attention.span.first_moment", and "first_moment".
struct ParsedName {
  std::string_view parameter, state;
};
ParsedName parse(std::string_view name) {
  if (!name.starts_with(kOptimizerPrefix)) return {name, {}};
  name.remove_prefix(kOptimizerPrefix.size());
  const std::size_t dot = name.rfind('.');
  return {name.substr(0, dot), name.substr(dot + 1)};
}

}  // namespace

void SpanResize::prepare(std::vector<NamedTensor>& wanted) {
  const double growth = static_cast<double>(to_) / static_cast<double>(from_);
  for (auto& [name, tensor, division] : wanted) {
    const auto [parameter, state] = parse(name);
    if (parameter == "position_keys" || parameter == "position_values") {
      const Tensor stored({from_, tensor.shape()[1]}, tensor.dtype(), tensor.device(), *allocator_);
      tables_.push_back({stored, tensor});
      tensor = stored;
    } else if (parameter.ends_with(".attention.span")) {
      // A gradient by zeta is S times one by the span in positions.
      const bool squared = state == "squared_gradient_sum" || state == "second_moment";
      spans_.push_back({tensor, state.empty() ? 1 / growth : squared ? growth * growth : growth, state.empty()});
    }
  }
}

void SpanResize::finish() {
  for (const auto& [stored, wanted] : tables_) {
    const std::int64_t rows = std::min(stored.shape()[0], wanted.shape()[0]);
    const Tensor from = stored.rows(0, rows);
    backend_->copy(wanted.raw(), from.raw(), from.bytes(), CopyKind::device_to_device);
  }
  for (const auto& spans : spans_)
    dispatch_float(spans.tensor.dtype(), "resize span", [&]<class T>() {
      std::vector<T> values = host_copy<T>(*backend_, spans.tensor);
      for (T& value : values) {
        value = static_cast<T>(static_cast<double>(value) * spans.factor);
        if (spans.is_share) value = std::min(value, T(1));
      }
      backend_->copy(spans.tensor.raw(), values.data(), spans.tensor.bytes(), CopyKind::host_to_device);
    });
}

}  // namespace engram

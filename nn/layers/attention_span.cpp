#include "nn/layers/attention_span.hpp"

#include <algorithm>
#include <cmath>

#include "autograd/functions/sum.hpp"
#include "autograd/tape.hpp"
#include "core/backend.hpp"
#include "core/error.hpp"
#include "core/span_mask.hpp"
#include "nn/init.hpp"

namespace engram {
namespace {

constexpr std::int64_t kWindowUnit = 16;

}  // namespace

AttentionSpan::AttentionSpan(int heads, const SpanOptions& options) : heads_(heads), options_(options) {
  if (options.adaptive) span_.emplace(Shape{heads}, init::constant(options.init), "spans");
  zeta_.assign(static_cast<std::size_t>(heads), options.adaptive ? options.init : 1.0);
  follow_zeta();
}

Variable AttentionSpan::forward(Tape& tape) { return span_ ? tape.parameter(*span_) : Variable(); }

Variable AttentionSpan::penalty(Tape& tape, double lambda, double share) {
  if (!span_) return {};
  return sum(tape.parameter(*span_), share * lambda * static_cast<double>(options_.max_span) / heads_);
}

void AttentionSpan::refresh(Backend& backend) {
  if (!span_) return;
  const Tensor& value = span_->value();
  std::vector<std::byte> host(value.bytes());
  backend.copy(host.data(), value.raw(), host.size(), CopyKind::device_to_host);
  dispatch_float(value.dtype(), "attention span", [&]<class T>() {
    const T* zeta = reinterpret_cast<const T*>(host.data());
    for (int head = 0; head < heads_; ++head) {
      if (!std::isfinite(zeta[head]))
        throw Error(text("attention span: ", span_->name(), " of head ", head, " is not finite (", zeta[head],
                         ")\n  a smaller learning rate or clip keeps the training stable"));
      zeta_[static_cast<std::size_t>(head)] = std::clamp(static_cast<double>(zeta[head]), 0.0, 1.0);
    }
  });
  follow_zeta();
}

std::vector<std::int64_t> AttentionSpan::reach() const {
  std::vector<std::int64_t> positions;
  for (const double zeta : zeta_) {
    const auto span = static_cast<std::int64_t>(std::ceil(zeta * static_cast<double>(options_.max_span)));
    positions.push_back(options_.adaptive ? std::min(options_.max_span, span + options_.ramp) : options_.max_span);
  }
  return positions;
}

void AttentionSpan::follow_zeta() {
  std::vector<std::int32_t> windows;
  for (const std::int64_t reach : reach()) {
    const std::int64_t rounded = (reach + 1 + kWindowUnit - 1) / kWindowUnit * kWindowUnit;
    windows.push_back(static_cast<std::int32_t>(std::min(options_.max_span, rounded)));
  }
  // Equal windows need not be built again: the common case, and it saves the allocations.
  if (windows != windows_.window) windows_ = HeadWindows(std::move(windows));
  cache_length_ =
      options_.adaptive
          ? span_trim(*std::ranges::max_element(zeta_), static_cast<int>(options_.max_span), options_.ramp).cache
          : options_.max_span;
}

void AttentionSpan::visit(Visitor& visit) {
  if (span_) visit("span", *span_);
}

}  // namespace engram

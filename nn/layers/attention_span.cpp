#include "nn/layers/attention_span.hpp"

#include <algorithm>
#include <cmath>

#include "autograd/functions/linear.hpp"
#include "autograd/functions/pointwise.hpp"
#include "autograd/functions/slice.hpp"
#include "autograd/functions/sum.hpp"
#include "autograd/tape.hpp"
#include "core/backend.hpp"
#include "core/error.hpp"
#include "core/rules/span_mask.hpp"
#include "nn/init.hpp"

namespace engram {
AttentionSpan::AttentionSpan(int heads, std::int64_t width, const SpanOptions& options, int allocated)
    : heads_(heads), options_(options) {
  double start = 1;
  if (options.kind == SpanKind::adaptive) {
    span_.emplace(Shape{std::max(heads, allocated)}, init::constant(options.init), "spans");
    start = options.init;
  } else if (options.kind == SpanKind::dynamic) {
    span_weight_.emplace(Shape{heads, width}, init::uniform_fan_in(width));
    span_bias_.emplace(Shape{heads}, init::constant(kDynamicBias), "undecayed");
    start = 1 / (1 + std::exp(-kDynamicBias));
  }
  zeta_.assign(static_cast<std::size_t>(heads), start);
  follow_zeta();
}

Variable AttentionSpan::forward(const Variable& x) {
  Tape& tape = x.tape();
  if (span_weight_)
    return sigmoid(linear(x, tape.parameter(*span_weight_), tape.parameter(*span_bias_), ProductResult::summed));
  if (!span_) return {};
  const Variable zeta = tape.parameter(*span_);
  return zeta.shape()[0] == heads_ ? zeta : slice(zeta, 0, 0, heads_);
}

Variable AttentionSpan::penalty(const Variable& zeta, double lambda, double share) const {
  if (!zeta) return {};
  return sum(zeta, share * lambda * static_cast<double>(options_.max_span) / static_cast<double>(zeta.shape().count()));
}

void AttentionSpan::take_means(std::vector<double> zeta) {
  if (options_.kind != SpanKind::dynamic || zeta.size() != zeta_.size())
    throw Error(text("attention span: means are taken for ", heads_, " heads of dynamic spans, got ", zeta.size()));
  zeta_ = std::move(zeta);
}

void AttentionSpan::refresh(Backend& backend, std::span<AttentionSpan* const> spans) {
  refresh_block(backend, spans, false);
  refresh_block(backend, spans, true);
}

void AttentionSpan::refresh_block(Backend& backend, std::span<AttentionSpan* const> spans, bool frozen) {
  const std::byte *begin = nullptr, *end = nullptr;
  for (const AttentionSpan* span : spans) {
    if (!span->span_ || span->span_->frozen() != frozen) continue;
    const Tensor& value = span->span_->value();
    const auto* const first = static_cast<const std::byte*>(value.raw());
    begin = begin == nullptr ? first : std::min(begin, first);
    end = std::max(end, first + value.bytes());
  }
  if (begin == nullptr) return;
  if (!backend.computes()) {  // spans stay as they begin
    for (AttentionSpan* span : spans) {
      span->captured_ = backend.works_behind();
      span->follow_zeta();
    }
    return;
  }
  std::vector<std::byte>& host = spans.front()->read_zeta_;
  host.resize(static_cast<std::size_t>(end - begin));
  backend.copy(host.data(), begin, host.size(), CopyKind::device_to_host);
  for (AttentionSpan* span : spans) {
    if (!span->span_ || span->span_->frozen() != frozen) continue;
    span->captured_ = backend.works_behind();
    span->take(host.data() + (static_cast<const std::byte*>(span->span_->value().raw()) - begin));
  }
}

void AttentionSpan::take(const std::byte* values) {
  dispatch_float(span_->value().dtype(), "attention span", [&]<class T>() {
    const T* zeta = reinterpret_cast<const T*>(values);
    for (int head = 0; head < heads_; ++head) {
      if (!std::isfinite(zeta[head]))
        throw NotFiniteError(
            text("attention span: ", span_->name(), " of head ", head, " is not finite (", zeta[head], ")"));
      zeta_[static_cast<std::size_t>(head)] = std::clamp(static_cast<double>(zeta[head]), 0.0, 1.0);
    }
  });
  follow_zeta();
}

std::int64_t AttentionSpan::reach(std::size_t head) const {
  if (options_.kind == SpanKind::fixed) return options_.max_span;
  const auto span = static_cast<std::int64_t>(std::ceil(zeta_[head] * static_cast<double>(options_.max_span)));
  return std::min(options_.max_span, span + options_.ramp);
}

std::vector<std::int64_t> AttentionSpan::reach() const {
  std::vector<std::int64_t> positions;
  for (std::size_t head = 0; head < zeta_.size(); ++head) positions.push_back(reach(head));
  return positions;
}

void AttentionSpan::follow_zeta() {
  wanted_windows_.clear();
  const bool adaptive = options_.kind == SpanKind::adaptive;
  const auto at_most_all = [&](std::int64_t positions) { return std::min(options_.max_span, positions); };
  std::int64_t seen = adaptive ? 0 : options_.max_span;
  for (std::size_t head = 0; head < zeta_.size(); ++head) {
    std::int64_t window = options_.max_span;
    if (adaptive) {
      seen = std::max(seen, at_most_all(stepped_window(reach(head) + 1, false)));
      window = at_most_all(stepped_window(reach(head) + 1, captured_));
    }
    wanted_windows_.push_back(static_cast<std::int32_t>(window));
  }
  // Equal windows need not be built again: the common case, and it saves the allocations.
  if (!(extent_.windows.window == wanted_windows_)) extent_.windows = HeadWindows(wanted_windows_);
  extent_.seen = seen;
  extent_.cache_length = options_.max_span;
  if (!adaptive) return;
  const std::int64_t kept =
      span_trim(*std::ranges::max_element(zeta_), static_cast<int>(options_.max_span), options_.ramp).cache;
  extent_.cache_length = captured_ ? at_most_all(stepped_window(kept, true)) : kept;
}

void AttentionSpan::visit(Visitor& visit) {
  if (span_) visit("span", *span_);
  if (!span_weight_) return;
  visit("span_weight", *span_weight_);
  visit("span_bias", *span_bias_);
}

}  // namespace engram

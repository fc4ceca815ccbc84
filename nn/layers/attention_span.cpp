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
  read_zeta_.resize(value.bytes());
  backend.copy(read_zeta_.data(), value.raw(), value.bytes(), CopyKind::device_to_host);
  dispatch_float(value.dtype(), "attention span", [&]<class T>() {
    const T* zeta = reinterpret_cast<const T*>(read_zeta_.data());
    for (int head = 0; head < heads_; ++head) {
      if (!std::isfinite(zeta[head]))
        throw Error(text("attention span: ", span_->name(), " of head ", head, " is not finite (", zeta[head],
                         ")\n  a smaller learning rate or clip keeps the training stable"));
      zeta_[static_cast<std::size_t>(head)] = std::clamp(static_cast<double>(zeta[head]), 0.0, 1.0);
    }
  });
  follow_zeta();
}

std::int64_t AttentionSpan::reach(std::size_t head) const {
  if (!options_.adaptive) return options_.max_span;
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
  for (std::size_t head = 0; head < zeta_.size(); ++head) {
    const std::int64_t rounded = (reach(head) + 1 + kWindowUnit - 1) / kWindowUnit * kWindowUnit;
    wanted_windows_.push_back(static_cast<std::int32_t>(std::min(options_.max_span, rounded)));
  }
  // Equal windows need not be built again: the common case, and it saves the allocations.
  if (!(windows_.window == wanted_windows_)) windows_ = HeadWindows(wanted_windows_);
  cache_length_ =
      options_.adaptive
          ? span_trim(*std::ranges::max_element(zeta_), static_cast<int>(options_.max_span), options_.ramp).cache
          : options_.max_span;
}

void AttentionSpan::visit(Visitor& visit) {
  if (span_) visit("span", *span_);
}

}  // namespace engram

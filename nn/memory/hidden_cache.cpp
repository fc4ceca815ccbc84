#include "nn/memory/hidden_cache.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "autograd/functions/project_past.hpp"
#include "core/error.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/head_windows.hpp"

namespace engram {

HiddenCache::HiddenCache(Backend& backend, Allocator& allocator, std::int64_t streams, std::int64_t width, DType dtype,
                         Pad pad, const AttentionSpan& span)
    : backend_(&backend),
      allocator_(&allocator),
      streams_(streams),
      width_(width),
      dtype_(dtype),
      pad_(pad),
      span_(&span) {
  reset();
}

Tensor HiddenCache::zeros(std::int64_t length) {
  Tensor tensor({streams_, length, width_}, dtype_, backend_->device(), *allocator_);
  const std::vector<std::byte> host(tensor.bytes());
  backend_->copy(tensor.raw(), host.data(), host.size(), CopyKind::host_to_device);
  return tensor;
}

void HiddenCache::reset() { restore(0, 0); }

void HiddenCache::restore(std::int64_t length, std::int64_t valid) {
  states_ = zeros(length);
  valid_ = valid;
}

void HiddenCache::read(Tape& tape, const Variable& key_weight, const Variable& value_weight, AttentionVariables& in,
                       AttentionOptions& options) {
  in.past_keys = project_past(states_, key_weight, options.windows);
  in.past_values = project_past(states_, value_weight, options.windows);
  count_shortfall(options.windows);
  if (pad_ != Pad::mask) return;
  in.past_valid = tape.step().empty({streams_}, DType::i32);
  kernels::fill(tape.step(), in.past_valid, static_cast<double>(valid_states()));
}

std::int64_t HiddenCache::valid_states() const { return std::min(valid_, states_.shape()[1]); }

void HiddenCache::count_shortfall(const HeadWindows& windows) {
  // The computed window is rounded up and holds one slot of weight 0; only a visible slot that is missing counts.
  if (valid_ > states_.shape()[1] && windows.longest > states_.shape()[1] + window_unit(*backend_)) ++shortfalls_;
}

void HiddenCache::update(Step& step, const Tensor& hidden, const Tensor&, const Tensor&) {
  const Shape wanted{streams_, span_->cache_length(), width_};
  // A tape that still holds the spare (two blocks before one backward pass) must not see it change.
  if (!spare_ || spare_.shape() != wanted || spare_.use_count() > 1)
    spare_ = Tensor(wanted, dtype_, backend_->device(), *allocator_);
  kernels::shift_cache(step, states_, hidden, spare_);
  std::swap(states_, spare_);
  valid_ += hidden.shape()[1];
}

void HiddenCache::append_state(std::vector<std::int64_t>& state) const {
  const auto address = [](const Tensor& tensor) {
    return tensor ? static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(tensor.raw())) : 0;
  };
  for (const std::int64_t number :
       {address(states_), states_.shape()[1], address(spare_), spare_ ? spare_.shape()[1] : 0,
        pad_ == Pad::mask ? valid_states() : 0, span_->cache_length()})
    state.push_back(number);
  const auto& windows = span_->windows().window;
  state.insert(state.end(), windows.begin(), windows.end());
}

void HiddenCache::replayed(std::int64_t positions) {
  count_shortfall(span_->windows());
  std::swap(states_, spare_);
  valid_ += positions;
}

void HiddenCache::undo(std::int64_t positions) {
  std::swap(states_, spare_);
  valid_ -= positions;
}

StatePast& state_past(LayerPast& past) {
  auto* const states = dynamic_cast<StatePast*>(&past);
  if (states == nullptr) throw Error("past: training must have hidden states, got another past");
  return *states;
}

}  // namespace engram

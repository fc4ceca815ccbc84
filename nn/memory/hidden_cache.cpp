#include "nn/memory/hidden_cache.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "autograd/functions/project_past.hpp"
#include "core/kernels/head_windows.hpp"

namespace engram {

HiddenCache::HiddenCache(Backend& backend, Allocator& allocator, std::int64_t streams, std::int64_t width, DType dtype,
                         Pad pad)
    : backend_(&backend), allocator_(&allocator), streams_(streams), width_(width), dtype_(dtype), pad_(pad) {
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
  // The computed window is rounded up and holds one slot of weight 0; only a visible slot that is missing counts.
  if (valid_ > states_.shape()[1] && options.windows.longest > states_.shape()[1] + 16) ++shortfalls_;
  if (pad_ != Pad::mask) return;
  Step& step = tape.step();
  const std::pmr::vector<std::int32_t> host(static_cast<std::size_t>(streams_),
                                            static_cast<std::int32_t>(std::min(valid_, states_.shape()[1])),
                                            step.objects());
  in.past_valid = step.empty({streams_}, DType::i32);
  backend_->copy(in.past_valid.raw(), host.data(), in.past_valid.bytes(), CopyKind::host_to_device);
}

void HiddenCache::update(Step& step, const Tensor& hidden, const Tensor&, const Tensor&, const AttentionSpan& span) {
  const Shape wanted{streams_, span.cache_length(), width_};
  // A tape that still holds the spare (two blocks before one backward pass) must not see it change.
  if (!spare_ || spare_.shape() != wanted || spare_.use_count() > 1)
    spare_ = Tensor(wanted, dtype_, backend_->device(), *allocator_);
  kernels::shift_cache(step, states_, hidden, spare_);
  std::swap(states_, spare_);
  valid_ += hidden.shape()[1];
}

}  // namespace engram

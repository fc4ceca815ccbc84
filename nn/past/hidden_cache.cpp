#include "nn/past/hidden_cache.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "autograd/functions/project_past.hpp"
#include "core/error.hpp"
#include "core/kernels/fill.hpp"

namespace engram {

void HiddenCache::reset() {
  buffers_.clear();
  valid_ = 0;
}

void HiddenCache::restore(std::int64_t length, std::int64_t valid) {
  buffers_.restore(length);
  valid_ = valid;
}

void HiddenCache::read(Tape& tape, const Variable& key_weight, const Variable& value_weight, AttentionVariables& in,
                       AttentionOptions& options) {
  PastProjections past = project_past(states(), key_weight, value_weight, options.windows);
  in.past_keys = std::move(past.keys);
  in.past_values = std::move(past.values);
  count_shortfall();
  if (pad_ != Pad::mask) return;
  in.past_valid = tape.step().empty({streams()}, DType::i32);
  kernels::fill(tape.step(), in.past_valid, static_cast<double>(valid_states()));
}

std::int64_t HiddenCache::valid_states() const { return std::min(valid_, states().shape()[1]); }

void HiddenCache::count_shortfall() {
  // What is seen is rounded up and holds one slot of weight 0; only a visible slot that is missing counts.
  if (valid_ > states().shape()[1] && extent_->seen > states().shape()[1] + kWindowUnit) ++shortfalls_;
}

void HiddenCache::update(Step& step, const Tensor& hidden, const Tensor&, const Tensor&) {
  buffers_.push(step, hidden, extent_->cache_length);
  valid_ += hidden.shape()[1];
}

void HiddenCache::append_state(std::vector<std::int64_t>& state) const {
  buffers_.append_state(state);
  state.push_back(pad_ == Pad::mask ? valid_states() : 0);
  state.push_back(extent_->cache_length);
  const auto& windows = extent_->windows.window;
  state.insert(state.end(), windows.begin(), windows.end());
}

void HiddenCache::replayed(std::int64_t positions) {
  count_shortfall();
  buffers_.replayed();
  valid_ += positions;
}

void HiddenCache::undo(std::int64_t positions) {
  buffers_.undo();
  valid_ -= positions;
}

}  // namespace engram

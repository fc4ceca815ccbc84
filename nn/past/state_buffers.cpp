#include "nn/past/state_buffers.hpp"

#include <utility>

#include "core/kernels/past.hpp"

namespace engram {

StateBuffers::StateBuffers(const PastPlace& place, std::int64_t width)
    : place_(place), width_(width), none_(empty(0)), states_(none_) {}

void StateBuffers::clear() {
  before_ = spare_before_ = {};
  if (states_.shape()[1] > 0) parked_ = states_;
  states_ = none_;
}

void StateBuffers::restore(std::int64_t length) {
  before_ = spare_before_ = {};
  if (states_.shape()[1] != length) states_ = length == 0 ? none_ : empty(length);
  place_.clear(states_);
}

void StateBuffers::settle(std::int64_t length) {
  before_ = spare_before_ = {};
  const Shape wanted{place_.streams, length, width_};
  // A tape that still holds the spare (two blocks before one backward pass) must not see it change.
  if (!spare_ || spare_.shape() != wanted || spare_.use_count() > 1) spare_ = place_.empty(wanted);
}

void StateBuffers::push(Step& step, const Tensor& block, std::int64_t length) {
  settle(length);
  kernels::shift_cache(step, states_, block, spare_);
  take_turns();
}

void StateBuffers::copy_streams(const StateBuffers& from, std::span<const std::int64_t> streams) {
  const std::int64_t length = from.states_.shape()[1];
  if (length == 0) return clear();
  before_ = spare_before_ = {};
  const Shape wanted{place_.streams, length, width_};
  // A tape may still read what is there.
  if (states_.shape() != wanted || states_.use_count() > 1) states_ = place_.empty(wanted);
  std::byte* to = static_cast<std::byte*>(states_.raw());
  const std::size_t bytes = states_.bytes() / static_cast<std::size_t>(place_.streams);
  for (const std::int64_t stream : streams) {
    const auto* const begin = static_cast<const std::byte*>(from.states_.raw());
    place_.backend.copy(to, begin + static_cast<std::size_t>(stream) * bytes, bytes, CopyKind::device_to_device);
    to += bytes;
  }
}

void StateBuffers::take_turns() {
  before_ = states_;
  spare_before_ = spare_;
  std::swap(states_, spare_);
  // After clear() the buffer that was read last has waited for this.
  if (spare_.shape()[1] == 0 && parked_ && parked_.shape() == states_.shape()) spare_ = std::exchange(parked_, {});
}

void StateBuffers::replayed() {
  before_ = spare_before_ = {};
  take_turns();
}

void StateBuffers::undo() {
  if (!before_) return;
  if (spare_ && spare_.raw() != before_.raw()) parked_ = spare_;
  states_ = std::exchange(before_, {});
  spare_ = std::exchange(spare_before_, {});
}

void StateBuffers::append_state(std::vector<std::int64_t>& state) const {
  for (const Tensor* const tensor : {&states_, &spare_, &parked_}) {
    state.push_back(*tensor ? static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(tensor->raw())) : 0);
    state.push_back(*tensor ? tensor->shape()[1] : 0);
  }
}

}  // namespace engram

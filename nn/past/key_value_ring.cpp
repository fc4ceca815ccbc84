#include "nn/past/key_value_ring.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/past.hpp"

namespace engram {

KeyValueRing::KeyValueRing(const PastPlace& place, std::int64_t depth, Pad pad, const HeadWindows& windows)
    : place_(place),
      pad_(pad),
      windows_(windows),
      keys_(place.empty({place.streams * windows.total, depth})),
      values_(place.empty(keys_.shape())) {
  reset();
}

void KeyValueRing::reset() {
  place_.clear(keys_);
  place_.clear(values_);
  count_ = 0;
}

void KeyValueRing::read(Tape& tape, const Variable&, const Variable&, AttentionVariables& in,
                        AttentionOptions& options) {
  if (tape.training()) throw Error("key-value ring: holds keys of frozen weights, so it needs an inference tape");
  if (options.windows != windows_) throw Error("key-value ring: the windows changed while it was in use");
  in.past_keys = tape.constant(keys_);
  in.past_values = tape.constant(values_);
  options.past_count = count_;
  if (pad_ != Pad::mask) return;
  in.past_valid = tape.step().empty({streams()}, DType::i32);
  kernels::fill(tape.step(), in.past_valid, static_cast<double>(std::min<std::int64_t>(count_, windows_.longest)));
}

void KeyValueRing::update(Step& step, const Tensor&, const Tensor& keys, const Tensor& values) {
  kernels::append_past(step, keys, count_, windows_, keys_);
  kernels::append_past(step, values, count_, windows_, values_);
  count_ += keys.shape()[1];
}

}  // namespace engram

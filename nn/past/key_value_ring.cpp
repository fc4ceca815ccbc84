#include "nn/past/key_value_ring.hpp"

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/past.hpp"

namespace engram {

KeyValueRing::KeyValueRing(Backend& backend, Allocator& allocator, std::int64_t streams, std::int64_t depth,
                           DType dtype, Pad pad, const HeadWindows& windows)
    : backend_(&backend),
      streams_(streams),
      pad_(pad),
      windows_(windows),
      keys_({streams * windows.total, depth}, dtype, backend.device(), allocator),
      values_({streams * windows.total, depth}, dtype, backend.device(), allocator) {
  reset();
}

void KeyValueRing::reset() {
  const std::vector<std::byte> zeros(keys_.bytes());
  backend_->copy(keys_.raw(), zeros.data(), zeros.size(), CopyKind::host_to_device);
  backend_->copy(values_.raw(), zeros.data(), zeros.size(), CopyKind::host_to_device);
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
  in.past_valid = tape.step().empty({streams_}, DType::i32);
  kernels::fill(tape.step(), in.past_valid, static_cast<double>(std::min<std::int64_t>(count_, windows_.longest)));
}

void KeyValueRing::update(Step& step, const Tensor&, const Tensor& keys, const Tensor& values) {
  kernels::append_past(step, keys, count_, windows_, keys_);
  kernels::append_past(step, values, count_, windows_, values_);
  count_ += keys.shape()[1];
}

}  // namespace engram

#include "nn/past/segment_ring.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/past.hpp"

namespace engram {

SegmentRing::SegmentRing(Backend& backend, Allocator& allocator, std::shared_ptr<SegmentGeometry> geometry,
                         std::int64_t depth, DType dtype, std::int64_t longest_block)
    : backend_(&backend),
      allocator_(&allocator),
      geometry_(std::move(geometry)),
      longest_block_(longest_block),
      windows_(geometry_->windows(longest_block)) {
  if (windows_.total > 0) {
    keys_ = Tensor({streams() * windows_.total, depth}, dtype, backend.device(), allocator);
    values_ = Tensor(keys_.shape(), dtype, backend.device(), allocator);
  }
  reset();
}

void SegmentRing::reset() {
  if (keys_) {
    // Also what a memory of zeros starts with: it has no keys but 0 where layers do not normalise what they project.
    const std::vector<std::byte> zeros(keys_.bytes());
    backend_->copy(keys_.raw(), zeros.data(), zeros.size(), CopyKind::host_to_device);
    backend_->copy(values_.raw(), zeros.data(), zeros.size(), CopyKind::host_to_device);
  }
  position_keys_ = {};
  count_ = 0;
}

const HeadWindows& SegmentRing::windows(std::int64_t block) {
  if (geometry_->farthest(block) > windows_.longest)
    throw Error(text("segment ring: was made for blocks of at most ", longest_block_, " positions, got ", block));
  return windows_;
}

void SegmentRing::read(Tape& tape, const Variable&, const Variable&, AttentionVariables& in,
                       AttentionOptions& options) {
  if (tape.training()) throw Error("segment ring: holds keys of frozen weights, so it needs an inference tape");
  if (!keys_) return;
  in.past_keys = tape.constant(keys_);
  in.past_values = tape.constant(values_);
  options.past_count = count_;
  in.past_valid = tape.step().empty({streams()}, DType::i32);
  kernels::fill(tape.step(), in.past_valid,
                static_cast<double>(std::min<std::int64_t>(geometry_->present(count_), windows_.longest)));
}

void SegmentRing::update(Step& step, const Tensor&, const Tensor& keys, const Tensor& values) {
  if (keys.shape()[0] != streams())
    throw ShapeError(text("segment ring: remembers ", streams(), " streams, got a block of ", keys.shape()[0]));
  if (context().memory == 0 || !keys_ || keys.shape()[1] == 0) return;
  kernels::append_past(step, keys, count_, windows_, keys_);
  kernels::append_past(step, values, count_, windows_, values_);
  count_ += keys.shape()[1];
}

void SegmentRing::keep_position_keys(Step& step, const Tensor& keys) {
  position_keys_ = Tensor(keys.shape(), keys.dtype(), backend_->device(), *allocator_);
  kernels::accumulate(step, keys, 1.0, position_keys_, Write::set);
}

}  // namespace engram

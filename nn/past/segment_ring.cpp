#include "nn/past/segment_ring.hpp"

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/kernels/copy.hpp"
#include "core/kernels/fill.hpp"
#include "core/kernels/past.hpp"

namespace engram {

SegmentRing::SegmentRing(std::shared_ptr<SegmentGeometry> geometry, std::int64_t depth, std::int64_t longest_block)
    : geometry_(std::move(geometry)), longest_block_(longest_block), windows_(geometry_->windows(longest_block)) {
  if (windows_.total > 0) {
    keys_ = geometry_->place().empty({streams() * windows_.total, depth});
    values_ = geometry_->place().empty(keys_.shape());
  }
  reset();
}

void SegmentRing::reset() {
  if (keys_) {
    // Also what a memory of zeros starts with: it has no keys but 0 where layers do not normalise what they project.
    geometry_->place().clear(keys_);
    geometry_->place().clear(values_);
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
  position_keys_ = geometry_->place().with(keys.dtype()).empty(keys.shape());
  kernels::accumulate(step, keys, 1.0, {position_keys_, Write::set});
}

}  // namespace engram

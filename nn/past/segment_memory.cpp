#include "nn/past/segment_memory.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "autograd/functions/embedding.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/functions/project_past.hpp"
#include "autograd/functions/reshape.hpp"
#include "core/error.hpp"
#include "core/kernels/fill.hpp"

namespace engram {

SegmentMemory::SegmentMemory(std::shared_ptr<SegmentGeometry> geometry, std::int64_t width)
    : geometry_(std::move(geometry)), buffers_(geometry_->place(), width) {
  reset();
}

void SegmentMemory::reset() {
  if (context().start == MemoryStart::zeros)
    buffers_.restore(context().memory);
  else
    buffers_.clear();
  valid_ = valid_before_ = 0;
}

void SegmentMemory::restore(std::int64_t length, std::int64_t valid) {
  if (valid < 0) throw Error(text("segment memory: must have seen at least 0 positions, got ", valid));
  buffers_.restore(length);
  // Of a shorter memory than this one, what was forgotten is not there.
  const bool shorter = context().start == MemoryStart::empty && length < context().memory;
  valid_ = valid_before_ = shorter ? std::min(valid, length) : valid;
}

void SegmentMemory::hide_missing(Tape& tape, AttentionVariables& in) const {
  in.past_valid = tape.step().empty({streams()}, DType::i32);
  kernels::fill(tape.step(), in.past_valid, static_cast<double>(geometry_->present(valid_)));
}

void SegmentMemory::read(Tape& tape, const Variable& key_weight, const Variable& value_weight, AttentionVariables& in,
                         AttentionOptions& options) {
  if (options.windows.total == 0) return;
  PastProjections past = project_past(states(), key_weight, value_weight, options.windows);
  in.past_keys = std::move(past.keys);
  in.past_values = std::move(past.values);
  hide_missing(tape, in);
}

void SegmentMemory::read_normalised(Tape& tape, const Normalise& normalise, const Variable& key_weight,
                                    const Variable& value_weight, AttentionVariables& in, AttentionOptions& options) {
  const std::int64_t positions = states().shape()[1];
  // Where there is nothing, all of the past is hidden, whatever it holds.
  if (positions == 0) return read(tape, key_weight, value_weight, in, options);
  if (options.windows.total == 0) return;
  const Variable normalised = normalise(tape.constant(states()));
  const std::int64_t heads = options.heads, depth = key_weight.shape()[0] / heads;
  const Tensor& rows = geometry_->packed_rows(in.content_query.shape()[1], positions);
  const auto packed = [&](const Variable& weight) {
    return embedding(reshape(linear(normalised, weight), {streams() * positions * heads, depth}), rows);
  };
  in.past_keys = packed(key_weight);
  in.past_values = packed(value_weight);
  hide_missing(tape, in);
}

void SegmentMemory::update(Step& step, const Tensor& hidden, const Tensor&, const Tensor&) {
  if (hidden.shape()[0] != streams())
    throw ShapeError(text("segment memory: remembers ", streams(), " streams, got a block of ", hidden.shape()[0]));
  if (remembers(hidden.shape()[1])) buffers_.push(step, hidden, context().memory);
  valid_before_ = valid_;
  valid_ += hidden.shape()[1];
}

void SegmentMemory::append_state(std::vector<std::int64_t>& state) const {
  buffers_.append_state(state);
  state.insert(state.end(),
               {geometry_->present(valid_), context().memory, static_cast<std::int64_t>(context().visibility),
                // Word dropout treats the first block otherwise.
                static_cast<std::int64_t>(valid_ > 0)});
}

void SegmentMemory::replayed(std::int64_t positions) {
  if (remembers(positions)) buffers_.replayed();
  valid_before_ = valid_;
  valid_ += positions;
}

void SegmentMemory::undo(std::int64_t) {
  if (remembers(valid_ - valid_before_)) buffers_.undo();
  valid_ = valid_before_;
}

}  // namespace engram

#include "nn/memory/segment_memory.hpp"

#include <utility>
#include <vector>

#include "autograd/functions/embedding.hpp"
#include "autograd/functions/linear.hpp"
#include "autograd/functions/project_past.hpp"
#include "autograd/functions/reshape.hpp"
#include "core/error.hpp"
#include "core/kernels/fill.hpp"

namespace engram {

SegmentPast& segment_past(LayerPast& past) {
  auto* const found = dynamic_cast<SegmentPast*>(&past);
  if (found == nullptr) throw Error("past: this family needs memories of segments, got another past");
  return *found;
}

SegmentMemory::SegmentMemory(Backend& backend, Allocator& allocator, std::shared_ptr<SegmentGeometry> geometry,
                             std::int64_t width, DType dtype)
    : backend_(&backend), allocator_(&allocator), geometry_(std::move(geometry)), width_(width), dtype_(dtype) {
  reset();
}

void SegmentMemory::reset() { restore(context().start == MemoryStart::zeros ? context().memory : 0, 0); }

void SegmentMemory::restore(std::int64_t length, std::int64_t valid) {
  states_ = Tensor({streams(), length, width_}, dtype_, backend_->device(), *allocator_);
  const std::vector<std::byte> zeros(states_.bytes());
  backend_->copy(states_.raw(), zeros.data(), zeros.size(), CopyKind::host_to_device);
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
  in.past_keys = project_past(states_, key_weight, options.windows);
  in.past_values = project_past(states_, value_weight, options.windows);
  hide_missing(tape, in);
}

void SegmentMemory::read_normalised(Tape& tape, LayerNorm& norm, const Variable& key_weight,
                                    const Variable& value_weight, AttentionVariables& in, AttentionOptions& options) {
  const std::int64_t positions = states_.shape()[1];
  // Where there is nothing, all of the past is hidden, whatever it holds.
  if (positions == 0) return read(tape, key_weight, value_weight, in, options);
  if (options.windows.total == 0) return;
  const Variable states = norm.forward(tape.constant(states_));
  const std::int64_t heads = options.heads, depth = key_weight.shape()[0] / heads;
  const Tensor& rows = geometry_->packed_rows(in.content_query.shape()[1], positions);
  const auto packed = [&](const Variable& weight) {
    return embedding(reshape(linear(states, weight), {streams() * positions * heads, depth}), rows);
  };
  in.past_keys = packed(key_weight);
  in.past_values = packed(value_weight);
  hide_missing(tape, in);
}

void SegmentMemory::update(Step& step, const Tensor& hidden, const Tensor&, const Tensor&) {
  if (hidden.shape()[0] != streams())
    throw ShapeError(text("segment memory: remembers ", streams(), " streams, got a block of ", hidden.shape()[0]));
  valid_before_ = valid_;
  valid_ += hidden.shape()[1];
  if (context().memory == 0 || hidden.shape()[1] == 0) return;
  const Shape wanted{streams(), context().memory, width_};
  // A tape that still holds the spare (two blocks before one backward pass) must not see it change.
  if (!spare_ || spare_.shape() != wanted || spare_.use_count() > 1)
    spare_ = Tensor(wanted, dtype_, backend_->device(), *allocator_);
  kernels::shift_cache(step, states_, hidden, spare_);
  std::swap(states_, spare_);
}

void SegmentMemory::append_state(std::vector<std::int64_t>& state) const {
  const auto address = [](const Tensor& tensor) {
    return tensor ? static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(tensor.raw())) : 0;
  };
  for (const std::int64_t number :
       {address(states_), states_.shape()[1], address(spare_), spare_ ? spare_.shape()[1] : 0,
        geometry_->present(valid_), context().memory, static_cast<std::int64_t>(context().visibility)})
    state.push_back(number);
}

void SegmentMemory::replayed(std::int64_t positions) {
  if (context().memory > 0 && positions > 0) std::swap(states_, spare_);
  valid_before_ = valid_;
  valid_ += positions;
}

void SegmentMemory::undo(std::int64_t) {
  if (context().memory > 0 && valid_ != valid_before_) std::swap(states_, spare_);
  valid_ = valid_before_;
}

}  // namespace engram

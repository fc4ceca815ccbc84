#include "nn/memory/recurrent_past.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace engram {

void RecurrentPast::push(Step& step, const Tensor& block) {
  buffers_.push(step, block, length_);
  valid_ += block.shape()[1];
}

void RecurrentPast::reset() {
  buffers_.clear();
  valid_ = 0;
}

void RecurrentPast::restore(std::int64_t length, std::int64_t valid) {
  if (length != 0 && length != length_)
    throw Error(text("past: a recurrent model must remember ", length_, " positions, got ", length));
  buffers_.restore(length);
  valid_ = valid;
}

void RecurrentPast::append_state(std::vector<std::int64_t>& state) const {
  buffers_.append_state(state);
  state.push_back(std::min(valid_, length_));
}

void RecurrentPast::replayed(std::int64_t positions) {
  buffers_.replayed();
  valid_ += positions;
}

void RecurrentPast::undo(std::int64_t positions) {
  buffers_.undo();
  valid_ -= positions;
}

RecurrentPast& recurrent_past(LayerPast& past) {
  auto* const found = dynamic_cast<RecurrentPast*>(&past);
  if (found == nullptr) throw Error("past: a recurrent model needs recurrent pasts, got another past");
  return *found;
}

}  // namespace engram

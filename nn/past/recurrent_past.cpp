#include "nn/past/recurrent_past.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace engram {

void RecurrentPast::push(Step& step, const Tensor& block) {
  buffers_.push(step, block, length_);
  valid_ += block.shape()[1];
}

void RecurrentPast::copy_streams(const RecurrentPast& from, std::span<const std::int64_t> streams) {
  if (from.length_ != length_ || from.width_ != width_ || from.states().dtype() != states().dtype())
    throw Error(text("past: copied streams must be of the same model, got ", from.length_, " positions of ",
                     from.width_, " ", from.states().dtype(), " for ", length_, " of ", width_, " ", states().dtype()));
  if (std::ssize(streams) != this->streams())
    throw Error(text("past: ", this->streams(), " streams must be copied, got ", streams.size()));
  for (const std::int64_t stream : streams)
    if (stream < 0 || stream >= from.streams())
      throw Error(text("past: a copied stream must be in [0, ", from.streams(), "), got ", stream));
  buffers_.copy_streams(from.buffers_, streams);
  valid_ = from.valid_;
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

void copy_streams(ModelPast& to, const ModelPast& from, std::span<const std::int64_t> streams) {
  if (to.size() != from.size())
    throw Error(text("past: copied streams must be of the same model, got ", from.size(), " parts for ", to.size()));
  for (std::size_t i = 0; i < to.size(); ++i) recurrent_past(*to[i]).copy_streams(recurrent_past(*from[i]), streams);
}

}  // namespace engram

#include "apps/run/generation/token_stream.hpp"

#include <algorithm>

#include "autograd/tape.hpp"
#include "core/error.hpp"

namespace engram {

std::int64_t TokenStream::window_of(const RunConfig& config) {
  return config.model.remembers() ? 0 : config.training.block + config.training.extension;
}

void TokenStream::append_to_window(std::span<const std::int32_t> tokens) {
  last_.insert(last_.end(), tokens.begin(), tokens.end());
  if (last_.size() > window_) last_.erase(last_.begin(), last_.end() - static_cast<std::ptrdiff_t>(window_));
  for (const auto& layer : past_) layer->reset();
  append_block(last_);
}

TokenStream::TokenStream(const PlacedModel& placed, std::int64_t window)
    : placed_(placed),
      past_(placed.frozen_past(1, std::max<std::int64_t>(window, kLongestBlock))),
      window_(static_cast<std::size_t>(window)) {}

void TokenStream::reset() {
  for (const auto& layer : past_) layer->reset();
  last_.clear();
}

std::span<const double> TokenStream::append(std::span<const std::int32_t> tokens) {
  if (tokens.empty()) throw Error("token stream: needs at least one token");
  if (window_ > 0) {
    append_to_window(tokens);
    return log_probabilities_;
  }
  while (!tokens.empty()) {
    const std::size_t length = std::min(tokens.size(), kLongestBlock);
    append_block(tokens.first(length));
    tokens = tokens.subspan(length);
  }
  return log_probabilities_;
}

void TokenStream::append_block(std::span<const std::int32_t> tokens) {
  placed_.runtime.in_step([&](Step& step) {
    const auto length = static_cast<std::int64_t>(tokens.size());
    const TokenBatch batch = block_.batch_of({.inputs = tokens, .targets = {}, .length = length}, placed_);
    Tape tape(step, Tape::Mode::inference);
    const Variable hidden = placed_.model.hidden(tape, batch, past_);
    const Shape& shape = hidden.shape();
    const Tensor last = hidden.value().view({length, shape[-1]}).rows(length - 1, length);
    log_probabilities_ = placed_.model.tokens().log_probabilities(tape.constant(last));
  });
}

}  // namespace engram

#include "apps/run/generation/token_stream.hpp"

#include <algorithm>

#include "autograd/tape.hpp"
#include "core/dtype.hpp"
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

TokenStream::TokenStream(LanguageModel& model, Runtime& runtime, DType dtype, std::int64_t window)
    : model_(&model),
      runtime_(&runtime),
      past_(model.frozen_past(runtime.backend(), runtime.memory(), 1, dtype,
                              std::max<std::int64_t>(window, kLongestBlock))),
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
  Step& step = runtime_->step();
  Backend& backend = runtime_->backend();
  step.begin({});
  {
    Tape tape(step, Tape::Mode::inference);
    const auto length = static_cast<std::int64_t>(tokens.size());
    block_.write({.inputs = tokens, .targets = {}, .length = length}, 1, model_->tokens().clusters(), backend,
                 runtime_->memory());
    const Variable hidden = model_->hidden(tape, block_.piece(0), past_);
    const Shape& shape = hidden.shape();
    const Tensor last = hidden.value().view({length, shape[-1]}).rows(length - 1, length);
    log_probabilities_ = model_->tokens().log_probabilities(tape.constant(last));
  }
  runtime_->arena().end_step();
}

}  // namespace engram

#include "apps/generation/token_stream.hpp"

#include <algorithm>

#include "autograd/tape.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"

namespace engram {

TokenStream::TokenStream(LanguageModel& model, Runtime& runtime, DType dtype)
    : model_(&model),
      runtime_(&runtime),
      past_(model.frozen_past(runtime.backend(), runtime.memory(), 1, dtype, kLongestBlock)) {}

std::span<const double> TokenStream::append(std::span<const std::int32_t> tokens) {
  if (tokens.empty()) throw Error("token stream: needs at least one token");
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

#include "apps/generation/token_stream.hpp"

#include <algorithm>

#include "autograd/tape.hpp"
#include "core/dtype.hpp"
#include "core/error.hpp"

namespace engram {

TokenStream::TokenStream(AllAttentionModel& model, Runtime& runtime, DType dtype)
    : model_(&model), runtime_(&runtime), past_(model.key_value_past(runtime.backend(), runtime.memory(), 1, dtype)) {}

std::span<const double> TokenStream::append(std::span<const std::int32_t> tokens) {
  if (tokens.empty()) throw Error("token stream: needs at least one token");
  while (!tokens.empty()) {
    const std::size_t length = std::min(tokens.size(), kLongestBlock);
    append_block(tokens.first(length));
    tokens = tokens.subspan(length);
  }
  return logits_;
}

void TokenStream::append_block(std::span<const std::int32_t> tokens) {
  Step& step = runtime_->step();
  Backend& backend = runtime_->backend();
  step.begin({});
  {
    Tape tape(step, Tape::Mode::inference);
    const auto length = static_cast<std::int64_t>(tokens.size());
    const Tensor input = step.empty({1, length}, DType::i32);
    backend.copy(input.raw(), tokens.data(), input.bytes(), CopyKind::host_to_device);
    const Tensor logits = model_->forward(tape, input, past_).value();
    const std::int64_t symbols = logits.shape()[-1];
    const Tensor last = logits.view({length, symbols}).rows(length - 1, length);
    dispatch_float(last.dtype(), "token stream", [&]<class T>() {
      std::vector<T> host(static_cast<std::size_t>(symbols));
      backend.copy(host.data(), last.raw(), last.bytes(), CopyKind::device_to_host);
      logits_.assign(host.begin(), host.end());
    });
  }
  runtime_->arena().end_step();
}

}  // namespace engram

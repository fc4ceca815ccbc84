#include "nn/layers/window_attention.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/tape.hpp"
#include "core/kernels/fill.hpp"

namespace engram {

WindowContext WindowContexts::of(const Variable& x) {
  Tape& tape = x.tape();
  const std::int64_t streams = x.shape()[0], length = x.shape()[1];
  auto found = windows_.find(length);
  if (found == windows_.end()) {
    const std::vector<std::int32_t> every(static_cast<std::size_t>(heads_), static_cast<std::int32_t>(length - 1));
    found = windows_.emplace(length, HeadWindows(every)).first;
  }
  WindowContext context{.windows = found->second, .past = {}, .past_valid = {}};
  if (context.windows.total == 0) return context;
  Tensor past = tape.step().empty({streams * context.windows.total, x.shape()[-1] / heads_}, x.dtype());
  kernels::fill(tape.step(), past, 0);
  context.past = tape.constant(std::move(past));
  context.past_valid = tape.step().empty({streams}, DType::i32);
  kernels::fill(tape.step(), context.past_valid, 0);
  return context;
}

WindowAttention::WindowAttention(const WindowAttentionOptions& options)
    : options_(options),
      query_(options.width, options.width),
      key_(options.width, options.width),
      value_(options.width, options.width),
      output_(options.width, options.width) {}

Variable WindowAttention::forward(const Variable& x, const WindowContext& context, AttentionTrace* trace) {
  AttentionVariables in;
  in.content_query = query_.forward(x);
  in.keys = key_.forward(x);
  in.values = value_.forward(x);
  in.past_keys = in.past_values = context.past;
  in.past_valid = context.past_valid;
  AttentionOptions options;
  options.heads = options_.heads;
  const std::int64_t depth = options_.width / options_.heads;
  options.score_scale = 1.0 / std::sqrt(static_cast<double>(depth));
  options.min_distance = 0;
  options.windows = context.windows;
  options.max_distance = std::max(1, options.windows.longest);  // 0 would be no context at all
  options.dropout = DropoutRule(options_.dropout);
  return output_.forward(traced_attention(in, options, options_.keep_bytes, trace).out);
}

void WindowAttention::visit(Visitor& visit) {
  visit("query", query_);
  visit("key", key_);
  visit("value", value_);
  visit("output", output_);
}

}  // namespace engram

#include "nn/layers/feed_forward.hpp"

#include "autograd/functions/pointwise.hpp"
#include "autograd/functions/relu_dropout.hpp"

namespace engram {

FeedForward::FeedForward(std::int64_t width, std::int64_t inner, double dropout, Activation activation)
    : inner_(width, inner), outer_(inner, width), dropout_(dropout), activation_(activation) {}

FeedForward::FeedForward(std::int64_t width, std::int64_t inner, const StateDropout& dropout, const LinearStart& start)
    : inner_(width, inner, start), outer_(inner, width, start), dropout_(dropout) {}

Variable FeedForward::forward(const Variable& x) {
  Tape& tape = x.tape();
  if (activation_ == Activation::relu && dropout_.rate > 0 && !dropout_.over_time && tape.training())
    return outer_.forward(relu_dropout(inner_.product(x), inner_.bias(tape), dropout_.rate));
  const Variable sums = inner_.forward(x);
  return outer_.forward(dropout_(activation_ == Activation::relu ? relu(sums) : gelu(sums)));
}

void FeedForward::visit(Visitor& visit) {
  visit("inner", inner_);
  visit("outer", outer_);
}

}  // namespace engram

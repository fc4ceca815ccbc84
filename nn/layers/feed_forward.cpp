#include "nn/layers/feed_forward.hpp"

#include "autograd/functions/pointwise.hpp"

namespace engram {

FeedForward::FeedForward(std::int64_t width, std::int64_t inner, double dropout)
    : inner_(width, inner), outer_(inner, width), dropout_(dropout) {}

FeedForward::FeedForward(std::int64_t width, std::int64_t inner, const StateDropout& dropout, const LinearStart& start)
    : inner_(width, inner, start), outer_(inner, width, start), dropout_(dropout) {}

Variable FeedForward::forward(const Variable& x) { return outer_.forward(dropout_(relu(inner_.forward(x)))); }

void FeedForward::visit(Visitor& visit) {
  visit("inner", inner_);
  visit("outer", outer_);
}

}  // namespace engram

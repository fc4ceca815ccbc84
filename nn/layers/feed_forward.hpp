#pragma once

#include "nn/layers/linear.hpp"
#include "nn/layers/state_dropout.hpp"

namespace engram {

/// W2 Dropout(relu(W1 x + b1)) + b2, the feed-forward sublayer of Vaswani et al. (2017), eq. 2, with dropout on the
/// activations as in the adaptive-span models.
class FeedForward final : public Module {
 public:
  FeedForward(std::int64_t width, std::int64_t inner, double dropout);
  /// The same with both maps starting as `start`.
  FeedForward(std::int64_t width, std::int64_t inner, const StateDropout& dropout, const LinearStart& start);
  /// x: [..., width] -> [..., width].
  Variable forward(const Variable& x);
  void visit(Visitor& visit) override;

 private:
  Linear inner_, outer_;
  StateDropout dropout_;
};

}  // namespace engram
